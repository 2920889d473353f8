package consoletest

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// The pictures of docs/img: five workers on three hosts share eight queues, and one of them would be drained. With
// -artifacts they are among the artifacts, as docs-task.png and docs-drain.png.
func TestPictures(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a process a host name of its own")
	}
	url := testdb.URL(t, testdb.Kinds(t)[0])
	r := newRoster(t, url)
	for i, host := range []string{"web1", "web1", "web1", "web2", "web3"} {
		r.onHost(host)
		r.await(fmt.Sprint(i+1, " workers"), fmt.Sprintf("SELECT COUNT(DISTINCT cur_server) = %d FROM schedule_queue WHERE task_type = 'settle' AND req_server IS NULL", i+1))
	}
	b := openBrowser(t, r.console(url, "--allow-changes"))
	b.open("task?task=settle")
	for i := range 14 { // seconds of work, so that there are figures to show
		rows := make([]string, 300)
		for n := range rows {
			rows[n] = fmt.Sprintf("(%d)", 1000*(i+1)+n)
		}
		r.exec("INSERT INTO orders (id) VALUES " + strings.Join(rows, ", "))
		time.Sleep(time.Second)
	}
	b.await("the strip has five owners", `document.querySelectorAll("#strip a.o5").length > 0`)
	b.await("nothing is wrong", `document.querySelectorAll(".findings li").length === 0`)
	b.picture("docs-task", 720)
	var drained string
	if err := r.db.QueryRowContext(t.Context(), "SELECT cur_server FROM schedule_queue WHERE task_type = 'settle' AND queue_id = '0'").Scan(&drained); err != nil {
		t.Fatal(err)
	}
	b.open("worker-drain?worker=" + drained)
	b.awaitText("main", "Queues that would move")
	b.picture("docs-drain", 560)
}

// onHost starts a worker that takes the host for one of this name.
func (r *roster) onHost(host string) {
	r.Helper()
	cmd := r.start("worker", "-c", "rota.yaml")
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		r.Fatal(err)
	}
	cmd.Path, cmd.Args = unshare, []string{"unshare", "--uts", "sh", "-c", `hostname "$1" && exec "$0" worker -c rota.yaml`, program, host}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
}

// await waits until a statement says true.
func (r *roster) await(what, statement string) {
	r.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var is bool
		if err := r.db.QueryRowContext(r.Context(), statement).Scan(&is); err != nil || time.Now().After(deadline) {
			r.Fatalf("%s: %v", what, err)
		}
		if is {
			return
		}
	}
}

// picture writes the upper part of the page among the artifacts, 1280 pixels wide.
func (b *browser) picture(name string, height int) {
	b.Helper()
	b.size(1280, 1)
	b.shot(name)
	file := filepath.Join(b.ArtifactDir(), name+".png")
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	whole, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	upper := image.NewRGBA(image.Rect(0, 0, whole.Bounds().Dx(), min(height, whole.Bounds().Dy())))
	draw.Draw(upper, upper.Bounds(), whole, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, upper); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
}
