// The page fetches itself every two seconds while it is visible, and merges what has changed. The server answers 304 if
// nothing has. Times are absolute; their ages are made here.
'use strict';

(() => {
  const every = 2000;
  let etag = null;
  let asOf = Number(document.body.dataset.asOf) || 0; // when the oldest part of the page was read
  let offset = 0; // what the server's clock is ahead of this one, in milliseconds
  let paused = false;
  let failed = null; // since when no answer has come

  // text writes a duration in at most two units.
  function text(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${Math.floor(s / 60)}m` + (s < 600 && s % 60 ? `${s % 60}s` : '');
    if (s < 86400) return `${Math.floor(s / 3600)}h` + (Math.floor(s / 60) % 60 ? `${Math.floor(s / 60) % 60}m` : '');
    return `${Math.floor(s / 86400)}d${Math.floor(s / 3600) % 24}h`;
  }

  function ages() {
    const now = Date.now() + offset;
    for (const e of document.querySelectorAll('time[data-age]')) {
      const at = Date.parse(e.dateTime);
      if (!e.title) e.title = e.dateTime.replace('T', ' ').slice(0, 19) + ' UTC';
      const t = at > now && e.dataset.age === 'in' ? 'in ' + text(at - now) : text(now - at) + ' ago';
      if (e.textContent !== t) e.textContent = t;
    }
    const age = document.getElementById('age');
    if (!age) return;
    let t = asOf ? text(now - asOf) + ' old' : '';
    if (failed) t = `no answer for ${text(Date.now() - failed)}`;
    if (paused) t += ', paused';
    if (age.textContent !== t) age.textContent = t;
  }

  async function update() {
    const response = await fetch(location.href, { headers: etag ? { 'If-None-Match': etag, Accept: 'text/html' } : { Accept: 'text/html' }, cache: 'no-store' });
    failed = null;
    const read = Number(response.headers.get('Rota-As-Of'));
    if (read) asOf = read;
    const date = Date.parse(response.headers.get('Date'));
    if (date) offset = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0;
    if (response.status === 304) return;
    etag = response.headers.get('ETag');
    const next = new DOMParser().parseFromString(await response.text(), 'text/html');
    merge(next);
  }

  // merge leaves alone what the reader is using: the field with the focus, an open list, what was chosen in it.
  function merge(next) {
    const keep = {
      beforeNodeMorphed: (old) => old.nodeType !== 1 || !(old.id === 'pause' || old.type === 'checkbox' ||
        (old === document.activeElement && old.matches('input, select, textarea'))),
      beforeAttributeUpdated: (name, node) => !(name === 'open' && node.matches('details')),
    };
    document.title = next.title;
    for (const id of ['top', 'main']) {
      const old = document.getElementById(id), now = next.getElementById(id);
      if (old && now) Idiomorph.morph(old, now, { callbacks: keep });
    }
    const banner = document.querySelector('.banner'), after = next.querySelector('.banner');
    if (banner && !after) banner.remove();
    else if (after && !banner) document.getElementById('top').after(after);
  }

  async function tick() {
    // A page with a form to fill in, or with the answer to one, stays as it is (data-still).
    if (!paused && !document.hidden && !document.querySelector('main [data-still]')) {
      try {
        await update();
      } catch {
        failed ??= Date.now();
      }
    }
    ages();
    // A part that is being read is there soon.
    setTimeout(tick, document.querySelector('main [data-checking]') ? every / 2 : every);
  }

  function toggle() {
    paused = !paused;
    document.getElementById('pause').textContent = paused ? 'Go on' : 'Pause';
    ages();
  }

  // A long change goes on by itself, one request after the other, until the page is closed.
  const again = document.querySelector('form[data-again]');
  if (again) setTimeout(() => again.requestSubmit(again.querySelector('button')), 300);

  const button = document.getElementById('pause');
  if (button) {
    button.hidden = false;
    button.addEventListener('click', toggle);
  }
  document.addEventListener('keydown', (e) => {
    if (e.target.matches('input, select, textarea') || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === '/') {
      const find = document.querySelector('main input[type=search]') || document.getElementById('find');
      if (find) { e.preventDefault(); find.focus(); }
    }
    if (e.key === 'p') toggle();
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) ages(); });
  ages();
  setInterval(ages, 1000);
  setTimeout(tick, every);
})();
