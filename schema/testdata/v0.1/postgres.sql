CREATE TABLE public.schedule_backlog (
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    queue_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    items bigint NOT NULL,
    oldest_at timestamp(6) with time zone,
    measured_at timestamp(6) with time zone NOT NULL,
    took_ms bigint NOT NULL,
    rate double precision,
    trend text DEFAULT ''::text NOT NULL,
    demand double precision,
    CONSTRAINT ck_schedule_backlog_demand CHECK (((demand >= (0)::double precision) AND (demand <= ('1000000000000000000'::numeric)::double precision))),
    CONSTRAINT ck_schedule_backlog_epoch CHECK (((epoch >= 0) AND (epoch <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_backlog_items CHECK (((items >= 0) AND (items <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_backlog_measured_at CHECK (((measured_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (measured_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backlog_oldest_at CHECK (((oldest_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (oldest_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backlog_rate CHECK (((rate >= ('-1000000000000000000'::numeric)::double precision) AND (rate <= ('1000000000000000000'::numeric)::double precision))),
    CONSTRAINT ck_schedule_backlog_took_ms CHECK (((took_ms >= 0) AND (took_ms <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_backlog_trend CHECK ((trend = ANY (ARRAY[''::text, 'EMPTY'::text, 'DRAINING'::text, 'STEADY'::text, 'GROWING'::text, 'STUCK'::text])))
);
CREATE TABLE public.schedule_queue (
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    queue_id text NOT NULL COLLATE pg_catalog."C",
    queue_index bigint NOT NULL,
    queue_total bigint,
    cur_server text COLLATE pg_catalog."C",
    req_server text COLLATE pg_catalog."C",
    epoch bigint DEFAULT 0 NOT NULL,
    plan_version bigint DEFAULT 0 NOT NULL,
    cur_since timestamp(6) with time zone,
    req_since timestamp(6) with time zone,
    queue_parameter text DEFAULT ''::text NOT NULL,
    cursor_value text DEFAULT ''::text NOT NULL,
    window_done_at timestamp(6) with time zone,
    crash_count bigint DEFAULT 0 NOT NULL,
    failing_since timestamp(6) with time zone,
    reserved_for text COLLATE pg_catalog."C",
    reserved_until timestamp(6) with time zone,
    waits_for text,
    division text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    gmt_created timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    gmt_modified timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT ck_schedule_queue_crash_count CHECK (((crash_count >= 0) AND (crash_count <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_queue_cur_since CHECK (((cur_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (cur_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_queue_epoch CHECK (((epoch >= 0) AND (epoch <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_queue_failing_since CHECK (((failing_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (failing_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_queue_gmt_created CHECK (((gmt_created >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (gmt_created <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_queue_gmt_modified CHECK (((gmt_modified >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (gmt_modified <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_queue_plan_version CHECK (((plan_version >= 0) AND (plan_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_queue_queue_index CHECK (((queue_index >= 0) AND (queue_index <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_queue_queue_total CHECK (((queue_total >= 1) AND (queue_total <= 1000000000))),
    CONSTRAINT ck_schedule_queue_req_since CHECK (((req_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (req_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_queue_reserved_until CHECK (((reserved_until >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (reserved_until <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_queue_window_done_at CHECK (((window_done_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (window_done_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone)))
);
CREATE TABLE public.schedule_queue_setting (
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    queue_id text NOT NULL COLLATE pg_catalog."C",
    labels text DEFAULT ''::text NOT NULL,
    rate_per_second double precision,
    max_in_flight bigint,
    weight bigint,
    CONSTRAINT ck_schedule_queue_setting_max_in_flight CHECK (((max_in_flight >= 0) AND (max_in_flight <= 1000000))),
    CONSTRAINT ck_schedule_queue_setting_rate_per_second CHECK (((rate_per_second >= (0)::double precision) AND (rate_per_second <= (1000000000)::double precision))),
    CONSTRAINT ck_schedule_queue_setting_weight CHECK (((weight >= 1) AND (weight <= 1000)))
);
CREATE TABLE public.schedule_server (
    uuid text NOT NULL COLLATE pg_catalog."C",
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    ip text DEFAULT ''::text NOT NULL,
    host_name text DEFAULT ''::text NOT NULL,
    pid bigint DEFAULT 0 NOT NULL,
    thread_number bigint DEFAULT 0 NOT NULL,
    state text DEFAULT 'SERVING'::text NOT NULL,
    register_time timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    heartbeat_time timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    beat_token text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    beat_count bigint DEFAULT 0 NOT NULL,
    judge_dead_interval_ms bigint DEFAULT 10000 NOT NULL,
    watching_since timestamp(6) with time zone,
    read_plan_version bigint DEFAULT 0 NOT NULL,
    read_sum bigint DEFAULT 0 NOT NULL,
    last_fetch_time timestamp(6) with time zone,
    next_run_start_time timestamp(6) with time zone,
    next_run_end_time timestamp(6) with time zone,
    fetch_count bigint DEFAULT 0 NOT NULL,
    fetch_item_count bigint DEFAULT 0 NOT NULL,
    success_count bigint DEFAULT 0 NOT NULL,
    failure_count bigint DEFAULT 0 NOT NULL,
    skip_count bigint DEFAULT 0 NOT NULL,
    execute_ms bigint DEFAULT 0 NOT NULL,
    in_hand bigint DEFAULT 0 NOT NULL,
    oldest_in_hand_since timestamp(6) with time zone,
    last_error text DEFAULT ''::text NOT NULL,
    last_error_at timestamp(6) with time zone,
    failing_since timestamp(6) with time zone,
    failed_calls bigint DEFAULT 0 NOT NULL,
    library_version text DEFAULT ''::text NOT NULL,
    labels text DEFAULT ''::text NOT NULL,
    hung_queues text,
    given_settings text,
    max_in_flight bigint,
    max_in_flight_target bigint,
    max_in_flight_version bigint DEFAULT 0 NOT NULL,
    weight bigint DEFAULT 1 NOT NULL,
    planner_version bigint DEFAULT 1 NOT NULL,
    witness text COLLATE pg_catalog."C",
    name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    process text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    capabilities text DEFAULT ''::text NOT NULL,
    CONSTRAINT ck_schedule_server_beat_count CHECK (((beat_count >= 0) AND (beat_count <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_execute_ms CHECK (((execute_ms >= 0) AND (execute_ms <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_failed_calls CHECK (((failed_calls >= 0) AND (failed_calls <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_failing_since CHECK (((failing_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (failing_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_failure_count CHECK (((failure_count >= 0) AND (failure_count <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_fetch_count CHECK (((fetch_count >= 0) AND (fetch_count <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_fetch_item_count CHECK (((fetch_item_count >= 0) AND (fetch_item_count <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_heartbeat_time CHECK (((heartbeat_time >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (heartbeat_time <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_in_hand CHECK (((in_hand >= 0) AND (in_hand <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_judge_dead_interval_ms CHECK (((judge_dead_interval_ms >= 0) AND (judge_dead_interval_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_server_last_error_at CHECK (((last_error_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (last_error_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_last_fetch_time CHECK (((last_fetch_time >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (last_fetch_time <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_max_in_flight CHECK (((max_in_flight >= 0) AND (max_in_flight <= 1000000))),
    CONSTRAINT ck_schedule_server_max_in_flight_target CHECK (((max_in_flight_target >= 0) AND (max_in_flight_target <= 1000000))),
    CONSTRAINT ck_schedule_server_max_in_flight_version CHECK (((max_in_flight_version >= 0) AND (max_in_flight_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_next_run_end_time CHECK (((next_run_end_time >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (next_run_end_time <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_next_run_start_time CHECK (((next_run_start_time >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (next_run_start_time <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_oldest_in_hand_since CHECK (((oldest_in_hand_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (oldest_in_hand_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_pid CHECK (((pid >= 0) AND (pid <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_planner_version CHECK (((planner_version >= 1) AND (planner_version <= 1000000))),
    CONSTRAINT ck_schedule_server_read_plan_version CHECK (((read_plan_version >= 0) AND (read_plan_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_read_sum CHECK (((read_sum >= 0) AND (read_sum <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_register_time CHECK (((register_time >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (register_time <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_skip_count CHECK (((skip_count >= 0) AND (skip_count <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_state CHECK ((state = ANY (ARRAY['SERVING'::text, 'STANDBY'::text, 'PAUSED'::text, 'DRAINING'::text, 'LEAVING'::text]))),
    CONSTRAINT ck_schedule_server_success_count CHECK (((success_count >= 0) AND (success_count <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_thread_number CHECK (((thread_number >= 0) AND (thread_number <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_server_watching_since CHECK (((watching_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (watching_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_server_weight CHECK (((weight >= 0) AND (weight <= 1000)))
)
WITH (fillfactor='50');
CREATE VIEW public.schedule_assignment AS
 SELECT q.task_type,
    q.own_sign,
    q.queue_id,
    q.queue_index,
    q.queue_total,
    q.cur_server,
    c.host_name AS cur_host,
    c.pid AS cur_pid,
    c.state AS cur_state,
        CASE
            WHEN isfinite(c.heartbeat_time) THEN round(EXTRACT(epoch FROM (clock.now - c.heartbeat_time)), 3)
            ELSE NULL::numeric
        END AS cur_heartbeat_age_s,
    q.req_server,
    r.host_name AS req_host,
        CASE
            WHEN isfinite(q.cur_since) THEN round(EXTRACT(epoch FROM (clock.now - q.cur_since)), 3)
            ELSE NULL::numeric
        END AS held_s,
        CASE
            WHEN isfinite(q.req_since) THEN round(EXTRACT(epoch FROM (clock.now - q.req_since)), 3)
            ELSE NULL::numeric
        END AS requested_s,
    q.epoch,
    q.queue_parameter,
    q.cursor_value,
        CASE
            WHEN ((q.cur_server IS NULL) AND (q.reserved_until > clock.now)) THEN 'RESERVED'::text
            WHEN (q.cur_server IS NULL) THEN 'UNASSIGNED'::text
            WHEN ((c.uuid IS NULL) OR (c.task_type <> q.task_type) OR (c.own_sign <> q.own_sign)) THEN 'ORPHAN'::text
            WHEN (c.heartbeat_time < (clock.now - ((LEAST(GREATEST(c.judge_dead_interval_ms, (0)::bigint), '315360000000'::bigint))::double precision * '00:00:00.001'::interval))) THEN 'OVERDUE'::text
            WHEN (q.req_server IS NOT NULL) THEN 'MOVING'::text
            ELSE 'HELD'::text
        END AS status,
    b.items AS backlog_items,
        CASE
            WHEN isfinite(b.oldest_at) THEN round(EXTRACT(epoch FROM (clock.now - b.oldest_at)), 3)
            ELSE NULL::numeric
        END AS backlog_oldest_s,
        CASE
            WHEN isfinite(b.measured_at) THEN round(EXTRACT(epoch FROM (clock.now - b.measured_at)), 3)
            ELSE NULL::numeric
        END AS backlog_age_s,
    b.rate AS backlog_rate,
    b.trend AS backlog_trend,
    q.reserved_for,
    q.reserved_until,
    COALESCE(p.labels, ''::text) AS pin,
    p.rate_per_second,
    p.max_in_flight,
    p.weight,
        CASE
            WHEN (q.cur_server IS NULL) THEN q.waits_for
            ELSE NULL::text
        END AS waits_for,
        CASE
            WHEN isfinite(q.failing_since) THEN round(EXTRACT(epoch FROM (clock.now - q.failing_since)), 3)
            ELSE NULL::numeric
        END AS failing_s
   FROM (((((public.schedule_queue q
     LEFT JOIN public.schedule_server c ON ((c.uuid = q.cur_server)))
     LEFT JOIN public.schedule_server r ON ((r.uuid = q.req_server)))
     LEFT JOIN public.schedule_queue_setting p ON (((p.task_type = q.task_type) AND (p.own_sign = q.own_sign) AND (p.queue_id = q.queue_id))))
     LEFT JOIN public.schedule_backlog b ON (((b.task_type = q.task_type) AND (b.own_sign = q.own_sign) AND (b.queue_id = q.queue_id))))
     CROSS JOIN ( SELECT clock_timestamp() AS now) clock);
CREATE TABLE public.schedule_backfill (
    backfill_id text NOT NULL COLLATE pg_catalog."C",
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    trigger_name text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    expression text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    start_at timestamp(6) with time zone,
    excluded_days text DEFAULT ''::text NOT NULL,
    params text DEFAULT ''::text NOT NULL,
    priority bigint DEFAULT 0 NOT NULL,
    from_at timestamp(6) with time zone NOT NULL,
    to_at timestamp(6) with time zone NOT NULL,
    parallel bigint DEFAULT 1 NOT NULL,
    rerun_failed boolean DEFAULT false NOT NULL,
    dependants boolean DEFAULT true NOT NULL,
    newest_first boolean DEFAULT false NOT NULL,
    state text DEFAULT 'RUNNING'::text NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    next_slot_at timestamp(6) with time zone,
    slots_total bigint DEFAULT 0 NOT NULL,
    slots_made bigint DEFAULT 0 NOT NULL,
    slots_kept bigint DEFAULT 0 NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    actor text DEFAULT ''::text NOT NULL,
    created_at timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp(6) with time zone,
    version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ck_schedule_backfill_created_at CHECK (((created_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (created_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backfill_ended_at CHECK (((ended_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backfill_from_at CHECK (((from_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (from_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backfill_kind CHECK ((kind = ANY (ARRAY['CRON'::text, 'EVERY'::text]))),
    CONSTRAINT ck_schedule_backfill_next_slot_at CHECK (((next_slot_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (next_slot_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backfill_parallel CHECK (((parallel >= 1) AND (parallel <= 100))),
    CONSTRAINT ck_schedule_backfill_priority CHECK (((priority >= '-1000000000000000000'::bigint) AND (priority <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_backfill_slots_kept CHECK (((slots_kept >= 0) AND (slots_kept <= 1000000))),
    CONSTRAINT ck_schedule_backfill_slots_made CHECK (((slots_made >= 0) AND (slots_made <= 1000000))),
    CONSTRAINT ck_schedule_backfill_slots_total CHECK (((slots_total >= 0) AND (slots_total <= 1000000))),
    CONSTRAINT ck_schedule_backfill_start_at CHECK (((start_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (start_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backfill_state CHECK ((state = ANY (ARRAY['RUNNING'::text, 'SUCCESS'::text, 'FAILED'::text, 'CANCELLED'::text]))),
    CONSTRAINT ck_schedule_backfill_to_at CHECK (((to_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (to_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_backfill_version CHECK (((version >= 0) AND (version <= '1000000000000000000'::bigint)))
)
WITH (fillfactor='70');
CREATE TABLE public.schedule_data (
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    data_id text NOT NULL COLLATE pg_catalog."C",
    marked boolean DEFAULT false NOT NULL,
    address text NOT NULL,
    gmt_created timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT ck_schedule_data_gmt_created CHECK (((gmt_created >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (gmt_created <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone)))
);
CREATE TABLE public.schedule_environment (
    own_sign text NOT NULL COLLATE pg_catalog."C",
    epoch_floor bigint DEFAULT 0 NOT NULL,
    lost_at timestamp(6) with time zone,
    lost_task text COLLATE pg_catalog."C",
    lost_report text,
    history_since timestamp(6) with time zone,
    CONSTRAINT ck_schedule_environment_epoch_floor CHECK (((epoch_floor >= 0) AND (epoch_floor <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_environment_history_since CHECK (((history_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (history_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_environment_lost_at CHECK (((lost_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (lost_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone)))
);
CREATE TABLE public.schedule_event (
    event_id bigint NOT NULL,
    event_time timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    queue_id text COLLATE pg_catalog."C",
    kind text NOT NULL,
    from_server text COLLATE pg_catalog."C",
    to_server text COLLATE pg_catalog."C",
    epoch bigint,
    reason text DEFAULT ''::text NOT NULL,
    actor text DEFAULT ''::text NOT NULL,
    alert text,
    subject text COLLATE pg_catalog."C",
    open_until timestamp(6) with time zone
);
ALTER TABLE public.schedule_event ALTER COLUMN event_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.schedule_event_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.schedule_failed_item (
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    item_hash text NOT NULL COLLATE pg_catalog."C",
    item_key text NOT NULL COLLATE pg_catalog."C",
    order_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    queue_id text NOT NULL COLLATE pg_catalog."C",
    partition_version bigint DEFAULT 0 NOT NULL,
    state text DEFAULT 'RETRY'::text NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    first_failed_at timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    next_attempt_at timestamp(6) with time zone,
    CONSTRAINT ck_schedule_failed_item_attempts CHECK (((attempts >= 0) AND (attempts <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_failed_item_first_failed_at CHECK (((first_failed_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (first_failed_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_failed_item_next_attempt_at CHECK (((next_attempt_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (next_attempt_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_failed_item_partition_version CHECK (((partition_version >= 0) AND (partition_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_failed_item_state CHECK ((state = ANY (ARRAY['RETRY'::text, 'STARTED'::text, 'DEAD'::text])))
);
CREATE TABLE public.schedule_run (
    run_id text NOT NULL COLLATE pg_catalog."C",
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    run_key text NOT NULL COLLATE pg_catalog."C",
    root_run_id text NOT NULL COLLATE pg_catalog."C",
    graph_name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    trigger_name text COLLATE pg_catalog."C",
    backfill_id text COLLATE pg_catalog."C",
    scheduled_at timestamp(6) with time zone NOT NULL,
    slot_end_at timestamp(6) with time zone,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    state text NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    cancel_requested boolean DEFAULT false NOT NULL,
    priority bigint DEFAULT 0 NOT NULL,
    params text DEFAULT ''::text NOT NULL,
    trace_parent text DEFAULT ''::text NOT NULL,
    not_before timestamp(6) with time zone,
    end_before timestamp(6) with time zone,
    max_attempts bigint DEFAULT 0 NOT NULL,
    queue_total bigint DEFAULT 0 NOT NULL,
    items_done bigint DEFAULT 0 NOT NULL,
    items_failed bigint DEFAULT 0 NOT NULL,
    items_at_least boolean DEFAULT false NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    created_at timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    waiting_since timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    started_at timestamp(6) with time zone,
    deadline_at timestamp(6) with time zone,
    finished_at timestamp(6) with time zone,
    failed_at timestamp(6) with time zone,
    alerted_at timestamp(6) with time zone,
    acked_at timestamp(6) with time zone,
    acked_by text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ck_schedule_run_acked_at CHECK (((acked_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (acked_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_alerted_at CHECK (((alerted_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (alerted_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_created_at CHECK (((created_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (created_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_deadline_at CHECK (((deadline_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (deadline_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_end_before CHECK (((end_before >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (end_before <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_failed_at CHECK (((failed_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (failed_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_finished_at CHECK (((finished_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (finished_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_items_done CHECK (((items_done >= 0) AND (items_done <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_items_failed CHECK (((items_failed >= 0) AND (items_failed <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_max_attempts CHECK (((max_attempts >= 0) AND (max_attempts <= 100000))),
    CONSTRAINT ck_schedule_run_not_before CHECK (((not_before >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (not_before <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_priority CHECK (((priority >= '-1000000000000000000'::bigint) AND (priority <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_queue_total CHECK (((queue_total >= 0) AND (queue_total <= 100000))),
    CONSTRAINT ck_schedule_run_scheduled_at CHECK (((scheduled_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (scheduled_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_slot_end_at CHECK (((slot_end_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (slot_end_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_started_at CHECK (((started_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (started_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_state CHECK ((state = ANY (ARRAY['WAITING'::text, 'READY'::text, 'RUNNING'::text, 'SUCCESS'::text, 'FAILED'::text, 'DEPENDENT_FAILED'::text, 'CANCELLED'::text, 'SKIPPED'::text]))),
    CONSTRAINT ck_schedule_run_version CHECK (((version >= 0) AND (version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_waiting_since CHECK (((waiting_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (waiting_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone)))
);
CREATE TABLE public.schedule_run_dep (
    run_id text NOT NULL COLLATE pg_catalog."C",
    upstream_run_id text NOT NULL COLLATE pg_catalog."C",
    rule text DEFAULT 'SUCCESS'::text NOT NULL,
    CONSTRAINT ck_schedule_run_dep_rule CHECK ((rule = ANY (ARRAY['SUCCESS'::text, 'FINISHED'::text])))
);
CREATE TABLE public.schedule_run_item (
    run_id text NOT NULL COLLATE pg_catalog."C",
    queue_id text NOT NULL COLLATE pg_catalog."C",
    item_no bigint NOT NULL,
    item_key text NOT NULL COLLATE pg_catalog."C",
    attempt bigint NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    failed_at timestamp(6) with time zone NOT NULL,
    CONSTRAINT ck_schedule_run_item_attempt CHECK (((attempt >= 0) AND (attempt <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_item_failed_at CHECK (((failed_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (failed_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_item_item_no CHECK (((item_no >= 0) AND (item_no <= '1000000000000'::bigint)))
);
CREATE TABLE public.schedule_run_queue (
    run_id text NOT NULL COLLATE pg_catalog."C",
    queue_id text NOT NULL COLLATE pg_catalog."C",
    queue_total bigint,
    state text DEFAULT 'PENDING'::text NOT NULL,
    server text COLLATE pg_catalog."C",
    epoch bigint DEFAULT 0 NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    recoveries bigint DEFAULT 0 NOT NULL,
    next_attempt_at timestamp(6) with time zone,
    cursor_value text DEFAULT ''::text NOT NULL,
    items_done bigint DEFAULT 0 NOT NULL,
    items_failed bigint DEFAULT 0 NOT NULL,
    items_at_least boolean DEFAULT false NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    started_at timestamp(6) with time zone,
    progress_at timestamp(6) with time zone,
    finished_at timestamp(6) with time zone,
    CONSTRAINT ck_schedule_run_queue_attempt CHECK (((attempt >= 0) AND (attempt <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_queue_epoch CHECK (((epoch >= 0) AND (epoch <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_queue_finished_at CHECK (((finished_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (finished_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_queue_items_done CHECK (((items_done >= 0) AND (items_done <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_queue_items_failed CHECK (((items_failed >= 0) AND (items_failed <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_queue_next_attempt_at CHECK (((next_attempt_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (next_attempt_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_queue_progress_at CHECK (((progress_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (progress_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_queue_queue_total CHECK (((queue_total >= 1) AND (queue_total <= 1000000000))),
    CONSTRAINT ck_schedule_run_queue_recoveries CHECK (((recoveries >= 0) AND (recoveries <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_run_queue_started_at CHECK (((started_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (started_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_run_queue_state CHECK ((state = ANY (ARRAY['PENDING'::text, 'RUNNING'::text, 'DONE'::text, 'FAILED'::text, 'CANCELLED'::text])))
)
WITH (fillfactor='70');
CREATE TABLE public.schedule_schema_lock (
    id bigint NOT NULL,
    holder text DEFAULT ''::text NOT NULL,
    expires_at timestamp(6) with time zone,
    oldest_companion bigint DEFAULT 1 NOT NULL,
    edition bigint DEFAULT 63 NOT NULL
);
CREATE TABLE public.schedule_schema_version (
    id bigint NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE public.schedule_schema_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.schedule_schema_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.schedule_server_history (
    uuid text NOT NULL COLLATE pg_catalog."C",
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    ip text DEFAULT ''::text NOT NULL,
    host_name text DEFAULT ''::text NOT NULL,
    pid bigint DEFAULT 0 NOT NULL,
    thread_number bigint DEFAULT 0 NOT NULL,
    state text DEFAULT 'SERVING'::text NOT NULL,
    register_time timestamp(6) with time zone NOT NULL,
    heartbeat_time timestamp(6) with time zone NOT NULL,
    beat_token text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    beat_count bigint DEFAULT 0 NOT NULL,
    judge_dead_interval_ms bigint DEFAULT 10000 NOT NULL,
    watching_since timestamp(6) with time zone,
    read_plan_version bigint DEFAULT 0 NOT NULL,
    read_sum bigint DEFAULT 0 NOT NULL,
    last_fetch_time timestamp(6) with time zone,
    next_run_start_time timestamp(6) with time zone,
    next_run_end_time timestamp(6) with time zone,
    fetch_count bigint DEFAULT 0 NOT NULL,
    fetch_item_count bigint DEFAULT 0 NOT NULL,
    success_count bigint DEFAULT 0 NOT NULL,
    failure_count bigint DEFAULT 0 NOT NULL,
    skip_count bigint DEFAULT 0 NOT NULL,
    execute_ms bigint DEFAULT 0 NOT NULL,
    in_hand bigint DEFAULT 0 NOT NULL,
    oldest_in_hand_since timestamp(6) with time zone,
    last_error text DEFAULT ''::text NOT NULL,
    last_error_at timestamp(6) with time zone,
    failing_since timestamp(6) with time zone,
    failed_calls bigint DEFAULT 0 NOT NULL,
    library_version text DEFAULT ''::text NOT NULL,
    labels text DEFAULT ''::text NOT NULL,
    hung_queues text,
    given_settings text,
    max_in_flight bigint,
    max_in_flight_target bigint,
    max_in_flight_version bigint DEFAULT 0 NOT NULL,
    weight bigint DEFAULT 1 NOT NULL,
    planner_version bigint DEFAULT 1 NOT NULL,
    witness text COLLATE pg_catalog."C",
    name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    process text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    capabilities text DEFAULT ''::text NOT NULL,
    left_time timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text NOT NULL
);
CREATE TABLE public.schedule_server_version (
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    uuid text NOT NULL COLLATE pg_catalog."C",
    queue_version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ck_schedule_server_version_queue_version CHECK (((queue_version >= 0) AND (queue_version <= '1000000000000000000'::bigint)))
)
WITH (fillfactor='50');
CREATE TABLE public.schedule_submission (
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    run_key text NOT NULL COLLATE pg_catalog."C",
    run_id text NOT NULL COLLATE pg_catalog."C",
    request text NOT NULL
);
CREATE TABLE public.schedule_task_after (
    task_type text NOT NULL COLLATE pg_catalog."C",
    upstream text NOT NULL COLLATE pg_catalog."C",
    rule text DEFAULT 'SUCCESS'::text NOT NULL,
    any_of boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_schedule_task_after_rule CHECK ((rule = ANY (ARRAY['SUCCESS'::text, 'FINISHED'::text])))
);
CREATE TABLE public.schedule_task_running (
    task_type text NOT NULL COLLATE pg_catalog."C",
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    paused boolean DEFAULT false NOT NULL,
    queue_total bigint DEFAULT 0 NOT NULL,
    queue_changes text,
    partition_version bigint DEFAULT 1 NOT NULL,
    membership_version bigint DEFAULT 0 NOT NULL,
    planned_version bigint DEFAULT 0 NOT NULL,
    plan_version bigint DEFAULT 0 NOT NULL,
    item_version bigint DEFAULT 0 NOT NULL,
    epoch_high bigint DEFAULT 0 NOT NULL,
    epoch_floor bigint DEFAULT 0 NOT NULL,
    audited_at timestamp(6) with time zone,
    last_assign_time timestamp(6) with time zone,
    last_assign_server text COLLATE pg_catalog."C",
    skipped text,
    reserved_until timestamp(6) with time zone,
    load_moves_until timestamp(6) with time zone,
    version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ck_schedule_task_running_audited_at CHECK (((audited_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (audited_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_task_running_epoch_floor CHECK (((epoch_floor >= 0) AND (epoch_floor <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_running_epoch_high CHECK (((epoch_high >= 0) AND (epoch_high <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_running_item_version CHECK (((item_version >= 0) AND (item_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_running_last_assign_time CHECK (((last_assign_time >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (last_assign_time <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_task_running_load_moves_until CHECK (((load_moves_until >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (load_moves_until <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_task_running_membership_version CHECK (((membership_version >= 0) AND (membership_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_running_partition_version CHECK (((partition_version >= 0) AND (partition_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_running_plan_version CHECK (((plan_version >= 0) AND (plan_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_running_planned_version CHECK (((planned_version >= 0) AND (planned_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_running_queue_changes CHECK ((jsonb_typeof((queue_changes)::jsonb) = 'object'::text)),
    CONSTRAINT ck_schedule_task_running_queue_total CHECK (((queue_total >= 0) AND (queue_total <= 100000))),
    CONSTRAINT ck_schedule_task_running_reserved_until CHECK (((reserved_until >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (reserved_until <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_task_running_skipped CHECK ((jsonb_typeof((skipped)::jsonb) = 'array'::text)),
    CONSTRAINT ck_schedule_task_running_version CHECK (((version >= 0) AND (version <= '1000000000000000000'::bigint)))
)
WITH (fillfactor='50');
CREATE TABLE public.schedule_task_type (
    task_type text NOT NULL COLLATE pg_catalog."C",
    mode text DEFAULT 'CONTINUOUS'::text NOT NULL,
    processor_type text DEFAULT 'SLEEP'::text NOT NULL,
    heartbeat_interval_ms bigint DEFAULT 2000 NOT NULL,
    judge_dead_interval_ms bigint DEFAULT 10000 NOT NULL,
    thread_number bigint DEFAULT 5 NOT NULL,
    fetch_number bigint DEFAULT 500 NOT NULL,
    execute_number bigint DEFAULT 1 NOT NULL,
    sleep_time_nodata_ms bigint DEFAULT 500 NOT NULL,
    sleep_time_interval_ms bigint DEFAULT 0 NOT NULL,
    permit_run_start_time text DEFAULT ''::text NOT NULL,
    permit_run_end_time text DEFAULT ''::text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    task_parameter text DEFAULT ''::text NOT NULL,
    data_database text DEFAULT ''::text NOT NULL,
    max_queues_per_server bigint DEFAULT 0 NOT NULL,
    max_servers bigint DEFAULT 0 NOT NULL,
    max_servers_per_host bigint DEFAULT 0 NOT NULL,
    require_labels text DEFAULT ''::text NOT NULL,
    prefer_labels text DEFAULT ''::text NOT NULL,
    spread_label text DEFAULT ''::text NOT NULL,
    balance text DEFAULT 'QUEUES'::text NOT NULL,
    load_moves_per_hour bigint DEFAULT 60 NOT NULL,
    splittable boolean DEFAULT false NOT NULL,
    hinted boolean DEFAULT false NOT NULL,
    rate_per_second double precision DEFAULT 0 NOT NULL,
    max_in_flight bigint DEFAULT 0 NOT NULL,
    queue_rate_per_second double precision DEFAULT 0 NOT NULL,
    queue_max_in_flight bigint DEFAULT 0 NOT NULL,
    batch_timeout_ms bigint DEFAULT 0 NOT NULL,
    drain_timeout_ms bigint DEFAULT 30000 NOT NULL,
    stall_after_ms bigint DEFAULT 300000 NOT NULL,
    item_max_attempts bigint DEFAULT 25 NOT NULL,
    count_in_outage boolean DEFAULT false NOT NULL,
    on_dead text DEFAULT 'HOLD'::text NOT NULL,
    item_retry_ms bigint DEFAULT 1000 NOT NULL,
    item_retry_factor double precision DEFAULT 2 NOT NULL,
    item_retry_jitter double precision DEFAULT 0.5 NOT NULL,
    item_retry_max_ms bigint DEFAULT 21600000 NOT NULL,
    failing_after bigint DEFAULT 5 NOT NULL,
    queue_max_attempts bigint DEFAULT 3 NOT NULL,
    queue_retry_ms bigint DEFAULT 30000 NOT NULL,
    sweep_max_repeats bigint DEFAULT 3 NOT NULL,
    max_recoveries bigint DEFAULT 5 NOT NULL,
    run_timeout_ms bigint DEFAULT 86400000 NOT NULL,
    run_start_timeout_ms bigint DEFAULT 0 NOT NULL,
    coalesce_runs boolean DEFAULT false NOT NULL,
    expire_own_sign_interval_ms bigint DEFAULT 86400000 NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    hint_version bigint DEFAULT 0 NOT NULL,
    gmt_created timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    gmt_modified timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT ck_schedule_task_type_balance CHECK ((balance = ANY (ARRAY['QUEUES'::text, 'LOAD'::text]))),
    CONSTRAINT ck_schedule_task_type_batch_timeout_ms CHECK (((batch_timeout_ms >= 0) AND (batch_timeout_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_drain_timeout_ms CHECK (((drain_timeout_ms >= 0) AND (drain_timeout_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_execute_number CHECK (((execute_number >= 0) AND (execute_number <= 1000000))),
    CONSTRAINT ck_schedule_task_type_expire_own_sign_interval_ms CHECK (((expire_own_sign_interval_ms >= 0) AND (expire_own_sign_interval_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_failing_after CHECK (((failing_after >= 0) AND (failing_after <= 1000000))),
    CONSTRAINT ck_schedule_task_type_fetch_number CHECK (((fetch_number >= 0) AND (fetch_number <= 1000000))),
    CONSTRAINT ck_schedule_task_type_gmt_created CHECK (((gmt_created >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (gmt_created <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_task_type_gmt_modified CHECK (((gmt_modified >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (gmt_modified <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_task_type_heartbeat_interval_ms CHECK (((heartbeat_interval_ms >= 0) AND (heartbeat_interval_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_hint_version CHECK (((hint_version >= 0) AND (hint_version <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_item_max_attempts CHECK (((item_max_attempts >= 0) AND (item_max_attempts <= 1000000))),
    CONSTRAINT ck_schedule_task_type_item_retry_factor CHECK (((item_retry_factor >= (0)::double precision) AND (item_retry_factor <= (1000000)::double precision))),
    CONSTRAINT ck_schedule_task_type_item_retry_jitter CHECK (((item_retry_jitter >= (0)::double precision) AND (item_retry_jitter <= (1)::double precision))),
    CONSTRAINT ck_schedule_task_type_item_retry_max_ms CHECK (((item_retry_max_ms >= 0) AND (item_retry_max_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_item_retry_ms CHECK (((item_retry_ms >= 0) AND (item_retry_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_judge_dead_interval_ms CHECK (((judge_dead_interval_ms >= 0) AND (judge_dead_interval_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_load_moves_per_hour CHECK (((load_moves_per_hour >= 0) AND (load_moves_per_hour <= 1000000))),
    CONSTRAINT ck_schedule_task_type_max_in_flight CHECK (((max_in_flight >= 0) AND (max_in_flight <= 1000000))),
    CONSTRAINT ck_schedule_task_type_max_queues_per_server CHECK (((max_queues_per_server >= 0) AND (max_queues_per_server <= 1000000))),
    CONSTRAINT ck_schedule_task_type_max_recoveries CHECK (((max_recoveries >= 0) AND (max_recoveries <= 1000000))),
    CONSTRAINT ck_schedule_task_type_max_servers CHECK (((max_servers >= 0) AND (max_servers <= 1000000))),
    CONSTRAINT ck_schedule_task_type_max_servers_per_host CHECK (((max_servers_per_host >= 0) AND (max_servers_per_host <= 1000000))),
    CONSTRAINT ck_schedule_task_type_mode CHECK ((mode = ANY (ARRAY['CONTINUOUS'::text, 'RUN'::text]))),
    CONSTRAINT ck_schedule_task_type_on_dead CHECK ((on_dead = ANY (ARRAY['HOLD'::text, 'PASS'::text]))),
    CONSTRAINT ck_schedule_task_type_processor_type CHECK ((processor_type = ANY (ARRAY['SLEEP'::text, 'NOTSLEEP'::text]))),
    CONSTRAINT ck_schedule_task_type_queue_max_attempts CHECK (((queue_max_attempts >= 0) AND (queue_max_attempts <= 1000000))),
    CONSTRAINT ck_schedule_task_type_queue_max_in_flight CHECK (((queue_max_in_flight >= 0) AND (queue_max_in_flight <= 1000000))),
    CONSTRAINT ck_schedule_task_type_queue_rate_per_second CHECK (((queue_rate_per_second >= (0)::double precision) AND (queue_rate_per_second <= (1000000000)::double precision))),
    CONSTRAINT ck_schedule_task_type_queue_retry_ms CHECK (((queue_retry_ms >= 0) AND (queue_retry_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_rate_per_second CHECK (((rate_per_second >= (0)::double precision) AND (rate_per_second <= (1000000000)::double precision))),
    CONSTRAINT ck_schedule_task_type_run_start_timeout_ms CHECK (((run_start_timeout_ms >= 0) AND (run_start_timeout_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_run_timeout_ms CHECK (((run_timeout_ms >= 0) AND (run_timeout_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_sleep_time_interval_ms CHECK (((sleep_time_interval_ms >= 0) AND (sleep_time_interval_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_sleep_time_nodata_ms CHECK (((sleep_time_nodata_ms >= 0) AND (sleep_time_nodata_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_stall_after_ms CHECK (((stall_after_ms >= 0) AND (stall_after_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_task_type_sweep_max_repeats CHECK (((sweep_max_repeats >= 0) AND (sweep_max_repeats <= 1000000))),
    CONSTRAINT ck_schedule_task_type_thread_number CHECK (((thread_number >= 0) AND (thread_number <= 1000000))),
    CONSTRAINT ck_schedule_task_type_version CHECK (((version >= 0) AND (version <= '1000000000000000000'::bigint)))
);
CREATE TABLE public.schedule_trigger (
    own_sign text DEFAULT 'BASE'::text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    trigger_id text NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    expression text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    start_at timestamp(6) with time zone,
    end_at timestamp(6) with time zone,
    max_fires bigint DEFAULT 0 NOT NULL,
    fires bigint DEFAULT 0 NOT NULL,
    next_fire_at timestamp(6) with time zone,
    prev_fire_at timestamp(6) with time zone,
    status text DEFAULT 'ACTIVE'::text NOT NULL,
    misfire text DEFAULT 'ONE'::text NOT NULL,
    misfire_after_ms bigint DEFAULT 60000 NOT NULL,
    catchup_max bigint DEFAULT 100 NOT NULL,
    jitter_ms bigint DEFAULT 0 NOT NULL,
    excluded_days text DEFAULT ''::text NOT NULL,
    overlap text DEFAULT 'SKIP'::text NOT NULL,
    priority bigint DEFAULT 0 NOT NULL,
    params text DEFAULT ''::text NOT NULL,
    missed bigint DEFAULT 0 NOT NULL,
    missed_at timestamp(6) with time zone,
    skipped bigint DEFAULT 0 NOT NULL,
    skipped_since timestamp(6) with time zone,
    message text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ck_schedule_trigger_catchup_max CHECK (((catchup_max >= 0) AND (catchup_max <= 1000000))),
    CONSTRAINT ck_schedule_trigger_end_at CHECK (((end_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (end_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_trigger_fires CHECK (((fires >= 0) AND (fires <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_trigger_jitter_ms CHECK (((jitter_ms >= 0) AND (jitter_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_trigger_kind CHECK ((kind = ANY (ARRAY['CRON'::text, 'EVERY'::text, 'ONCE'::text]))),
    CONSTRAINT ck_schedule_trigger_max_fires CHECK (((max_fires >= 0) AND (max_fires <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_trigger_misfire CHECK ((misfire = ANY (ARRAY['ONE'::text, 'SKIP'::text, 'ALL'::text]))),
    CONSTRAINT ck_schedule_trigger_misfire_after_ms CHECK (((misfire_after_ms >= 0) AND (misfire_after_ms <= '315360000000'::bigint))),
    CONSTRAINT ck_schedule_trigger_missed CHECK (((missed >= 0) AND (missed <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_trigger_missed_at CHECK (((missed_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (missed_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_trigger_next_fire_at CHECK (((next_fire_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (next_fire_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_trigger_overlap CHECK ((overlap = ANY (ARRAY['SKIP'::text, 'WAIT'::text]))),
    CONSTRAINT ck_schedule_trigger_prev_fire_at CHECK (((prev_fire_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (prev_fire_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_trigger_priority CHECK (((priority >= '-1000000000000000000'::bigint) AND (priority <= '1000000000000000000'::bigint))),
    CONSTRAINT ck_schedule_trigger_skipped CHECK (((skipped >= 0) AND (skipped <= '1000000000000'::bigint))),
    CONSTRAINT ck_schedule_trigger_skipped_since CHECK (((skipped_since >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (skipped_since <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_trigger_start_at CHECK (((start_at >= '1000-01-01 00:00:00+00'::timestamp with time zone) AND (start_at <= '9999-12-31 23:59:59.999999+00'::timestamp with time zone))),
    CONSTRAINT ck_schedule_trigger_status CHECK ((status = ANY (ARRAY['ACTIVE'::text, 'PAUSED'::text, 'DONE'::text, 'ERROR'::text]))),
    CONSTRAINT ck_schedule_trigger_version CHECK (((version >= 0) AND (version <= '1000000000000000000'::bigint)))
)
WITH (fillfactor='70');
INSERT INTO public.schedule_backfill (backfill_id, task_type, own_sign, trigger_name, kind, expression, time_zone, start_at, excluded_days, params, priority, from_at, to_at, parallel, rerun_failed, dependants, newest_first, state, paused, next_slot_at, slots_total, slots_made, slots_kept, message, actor, created_at, ended_at, version) VALUES ('1', 'settle', 'BASE', 'a', 'CRON', '', 'UTC', NULL, '', '', 0, '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 1, false, true, false, 'RUNNING', false, NULL, 0, 0, 0, '', '', '2026-11-30 12:58:03.864265+00', NULL, 0);
INSERT INTO public.schedule_backlog (task_type, own_sign, queue_id, epoch, items, oldest_at, measured_at, took_ms, rate, trend, demand) VALUES ('settle', 'BASE', '0', 1, 5, NULL, '2026-01-01 00:00:00+00', 1, NULL, '', NULL);
INSERT INTO public.schedule_data (own_sign, name, data_id, marked, address, gmt_created) VALUES ('BASE', 'orders', 'x', false, '', '2026-11-30 12:58:03.860508+00');
INSERT INTO public.schedule_environment (own_sign, epoch_floor, lost_at, lost_task, lost_report, history_since) VALUES ('BASE', 0, NULL, NULL, NULL, NULL);
INSERT INTO public.schedule_event (event_id, event_time, task_type, own_sign, queue_id, kind, from_server, to_server, epoch, reason, actor, alert, subject, open_until) VALUES (1, '2026-11-30 12:58:03.860747+00', 'settle', 'BASE', NULL, 'ALERT', NULL, NULL, NULL, '', '', NULL, NULL, NULL);
INSERT INTO public.schedule_failed_item (task_type, own_sign, item_hash, item_key, order_key, queue_id, partition_version, state, attempts, last_error, first_failed_at, next_attempt_at) VALUES ('settle', 'BASE', 'h', '17', '', '0', 0, 'RETRY', 0, '', '2026-11-30 12:58:03.861125+00', NULL);
INSERT INTO public.schedule_queue (task_type, own_sign, queue_id, queue_index, queue_total, cur_server, req_server, epoch, plan_version, cur_since, req_since, queue_parameter, cursor_value, window_done_at, crash_count, failing_since, reserved_for, reserved_until, waits_for, division, gmt_created, gmt_modified) VALUES ('settle', 'BASE', '0', 0, NULL, NULL, NULL, 0, 0, NULL, NULL, '', '', NULL, 0, NULL, NULL, NULL, NULL, '', '2026-11-30 12:58:03.859896+00', '2026-11-30 12:58:03.859896+00');
INSERT INTO public.schedule_queue_setting (task_type, own_sign, queue_id, labels, rate_per_second, max_in_flight, weight) VALUES ('settle', 'BASE', '0', 'zone=b', NULL, NULL, NULL);
INSERT INTO public.schedule_run (run_id, task_type, own_sign, run_key, root_run_id, graph_name, trigger_name, backfill_id, scheduled_at, slot_end_at, time_zone, state, paused, cancel_requested, priority, params, trace_parent, not_before, end_before, max_attempts, queue_total, items_done, items_failed, items_at_least, message, created_at, waiting_since, started_at, deadline_at, finished_at, failed_at, alerted_at, acked_at, acked_by, version) VALUES ('1', 'settle', 'BASE', 'k', '1', '', NULL, NULL, '2026-01-01 00:00:00+00', NULL, 'UTC', 'READY', false, false, 0, '', '', NULL, NULL, 0, 0, 0, 0, false, '', '2026-11-30 12:58:03.862546+00', '2026-11-30 12:58:03.862546+00', NULL, NULL, NULL, NULL, NULL, NULL, '', 0);
INSERT INTO public.schedule_run_dep (run_id, upstream_run_id, rule) VALUES ('1', '0', 'SUCCESS');
INSERT INTO public.schedule_run_item (run_id, queue_id, item_no, item_key, attempt, last_error, failed_at) VALUES ('1', '0', 1, '17', 1, '', '2026-01-01 00:00:00+00');
INSERT INTO public.schedule_run_queue (run_id, queue_id, queue_total, state, server, epoch, attempt, recoveries, next_attempt_at, cursor_value, items_done, items_failed, items_at_least, last_error, started_at, progress_at, finished_at) VALUES ('1', '0', NULL, 'PENDING', NULL, 0, 0, 0, NULL, '', 0, 0, false, '', NULL, NULL, NULL);
INSERT INTO public.schedule_schema_lock (id, holder, expires_at, oldest_companion, edition) VALUES (1, '', NULL, 1, 63);
INSERT INTO public.schedule_schema_version (id, version_id, is_applied, tstamp) VALUES (1, 0, true, '2026-11-30 12:58:03.781694+00');
INSERT INTO public.schedule_schema_version (id, version_id, is_applied, tstamp) VALUES (2, 1, true, '2026-11-30 12:58:03.85551+00');
INSERT INTO public.schedule_server (uuid, task_type, own_sign, ip, host_name, pid, thread_number, state, register_time, heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since, read_plan_version, read_sum, last_fetch_time, next_run_start_time, next_run_end_time, fetch_count, fetch_item_count, success_count, failure_count, skip_count, execute_ms, in_hand, oldest_in_hand_since, last_error, last_error_at, failing_since, failed_calls, library_version, labels, hung_queues, given_settings, max_in_flight, max_in_flight_target, max_in_flight_version, weight, planner_version, witness, name, process, capabilities) VALUES ('a', 'settle', 'BASE', '', '', 0, 0, 'SERVING', '2026-11-30 12:58:03.859034+00', '2026-11-30 12:58:03.859034+00', '', 0, 10000, NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, '', NULL, NULL, 0, '', '', NULL, NULL, NULL, NULL, 0, 1, 1, NULL, '', '', '');
INSERT INTO public.schedule_server_history (uuid, task_type, own_sign, ip, host_name, pid, thread_number, state, register_time, heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since, read_plan_version, read_sum, last_fetch_time, next_run_start_time, next_run_end_time, fetch_count, fetch_item_count, success_count, failure_count, skip_count, execute_ms, in_hand, oldest_in_hand_since, last_error, last_error_at, failing_since, failed_calls, library_version, labels, hung_queues, given_settings, max_in_flight, max_in_flight_target, max_in_flight_version, weight, planner_version, witness, name, process, capabilities, left_time, reason) VALUES ('a', 'settle', 'BASE', '', '', 0, 0, 'SERVING', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', '', 0, 10000, NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, '', NULL, NULL, 0, '', '', NULL, NULL, NULL, NULL, 0, 1, 1, NULL, '', '', '', '2026-11-30 12:58:03.859661+00', 'LEFT');
INSERT INTO public.schedule_server_version (task_type, own_sign, uuid, queue_version) VALUES ('settle', 'BASE', 'a', 0);
INSERT INTO public.schedule_submission (task_type, own_sign, run_key, run_id, request) VALUES ('settle', 'BASE', 'k', '1', '{}');
INSERT INTO public.schedule_task_after (task_type, upstream, rule, any_of) VALUES ('a', 'b', 'SUCCESS', false);
INSERT INTO public.schedule_task_running (task_type, own_sign, paused, queue_total, queue_changes, partition_version, membership_version, planned_version, plan_version, item_version, epoch_high, epoch_floor, audited_at, last_assign_time, last_assign_server, skipped, reserved_until, load_moves_until, version) VALUES ('settle', 'BASE', false, 0, NULL, 1, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.schedule_task_type (task_type, mode, processor_type, heartbeat_interval_ms, judge_dead_interval_ms, thread_number, fetch_number, execute_number, sleep_time_nodata_ms, sleep_time_interval_ms, permit_run_start_time, permit_run_end_time, time_zone, task_parameter, data_database, max_queues_per_server, max_servers, max_servers_per_host, require_labels, prefer_labels, spread_label, balance, load_moves_per_hour, splittable, hinted, rate_per_second, max_in_flight, queue_rate_per_second, queue_max_in_flight, batch_timeout_ms, drain_timeout_ms, stall_after_ms, item_max_attempts, count_in_outage, on_dead, item_retry_ms, item_retry_factor, item_retry_jitter, item_retry_max_ms, failing_after, queue_max_attempts, queue_retry_ms, sweep_max_repeats, max_recoveries, run_timeout_ms, run_start_timeout_ms, coalesce_runs, expire_own_sign_interval_ms, version, hint_version, gmt_created, gmt_modified) VALUES ('settle', 'CONTINUOUS', 'SLEEP', 2000, 10000, 5, 500, 1, 500, 0, '', '', 'UTC', '', '', 0, 0, 0, '', '', '', 'QUEUES', 60, false, false, 0, 0, 0, 0, 0, 30000, 300000, 25, false, 'HOLD', 1000, 2, 0.5, 21600000, 5, 3, 30000, 3, 5, 86400000, 0, false, 86400000, 0, 0, '2026-11-30 12:58:03.857781+00', '2026-11-30 12:58:03.857781+00');
INSERT INTO public.schedule_trigger (own_sign, name, trigger_id, target, kind, expression, time_zone, start_at, end_at, max_fires, fires, next_fire_at, prev_fire_at, status, misfire, misfire_after_ms, catchup_max, jitter_ms, excluded_days, overlap, priority, params, missed, missed_at, skipped, skipped_since, message, version) VALUES ('BASE', 'a', 'a', 'settle', 'CRON', '', 'UTC', NULL, NULL, 0, 0, NULL, NULL, 'ACTIVE', 'ONE', 60000, 100, 0, '', 'SKIP', 0, '', 0, NULL, 0, NULL, '', 0);
SELECT pg_catalog.setval('public.schedule_event_event_id_seq', 1, true);
SELECT pg_catalog.setval('public.schedule_schema_version_id_seq', 2, true);
ALTER TABLE ONLY public.schedule_backfill
    ADD CONSTRAINT schedule_backfill_pkey PRIMARY KEY (backfill_id);
ALTER TABLE ONLY public.schedule_backlog
    ADD CONSTRAINT schedule_backlog_pkey PRIMARY KEY (task_type, own_sign, queue_id);
ALTER TABLE ONLY public.schedule_data
    ADD CONSTRAINT schedule_data_pkey PRIMARY KEY (own_sign, name);
ALTER TABLE ONLY public.schedule_environment
    ADD CONSTRAINT schedule_environment_pkey PRIMARY KEY (own_sign);
ALTER TABLE ONLY public.schedule_event
    ADD CONSTRAINT schedule_event_pkey PRIMARY KEY (event_id);
ALTER TABLE ONLY public.schedule_failed_item
    ADD CONSTRAINT schedule_failed_item_pkey PRIMARY KEY (task_type, own_sign, item_hash);
ALTER TABLE ONLY public.schedule_queue
    ADD CONSTRAINT schedule_queue_pkey PRIMARY KEY (task_type, own_sign, queue_id);
ALTER TABLE ONLY public.schedule_queue_setting
    ADD CONSTRAINT schedule_queue_setting_pkey PRIMARY KEY (task_type, own_sign, queue_id);
ALTER TABLE ONLY public.schedule_run_dep
    ADD CONSTRAINT schedule_run_dep_pkey PRIMARY KEY (run_id, upstream_run_id);
ALTER TABLE ONLY public.schedule_run_item
    ADD CONSTRAINT schedule_run_item_pkey PRIMARY KEY (run_id, queue_id, item_no);
ALTER TABLE ONLY public.schedule_run
    ADD CONSTRAINT schedule_run_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.schedule_run_queue
    ADD CONSTRAINT schedule_run_queue_pkey PRIMARY KEY (run_id, queue_id);
ALTER TABLE ONLY public.schedule_schema_lock
    ADD CONSTRAINT schedule_schema_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schedule_schema_version
    ADD CONSTRAINT schedule_schema_version_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schedule_schema_version
    ADD CONSTRAINT schedule_schema_version_version_id_key UNIQUE (version_id);
ALTER TABLE ONLY public.schedule_server_history
    ADD CONSTRAINT schedule_server_history_pkey PRIMARY KEY (uuid);
ALTER TABLE ONLY public.schedule_server
    ADD CONSTRAINT schedule_server_pkey PRIMARY KEY (uuid);
ALTER TABLE ONLY public.schedule_server_version
    ADD CONSTRAINT schedule_server_version_pkey PRIMARY KEY (task_type, own_sign, uuid);
ALTER TABLE ONLY public.schedule_submission
    ADD CONSTRAINT schedule_submission_pkey PRIMARY KEY (task_type, own_sign, run_key);
ALTER TABLE ONLY public.schedule_task_after
    ADD CONSTRAINT schedule_task_after_pkey PRIMARY KEY (task_type, upstream);
ALTER TABLE ONLY public.schedule_task_running
    ADD CONSTRAINT schedule_task_running_pkey PRIMARY KEY (task_type, own_sign);
ALTER TABLE ONLY public.schedule_task_type
    ADD CONSTRAINT schedule_task_type_pkey PRIMARY KEY (task_type);
ALTER TABLE ONLY public.schedule_trigger
    ADD CONSTRAINT schedule_trigger_pkey PRIMARY KEY (own_sign, name);
ALTER TABLE ONLY public.schedule_run
    ADD CONSTRAINT uq_schedule_run_key UNIQUE (task_type, own_sign, run_key);
CREATE INDEX idx_schedule_backfill_state ON public.schedule_backfill USING btree (task_type, own_sign, state);
CREATE INDEX idx_schedule_backlog_time ON public.schedule_backlog USING btree (measured_at);
CREATE INDEX idx_schedule_event_kind ON public.schedule_event USING btree (kind, own_sign, event_id);
CREATE INDEX idx_schedule_event_queue ON public.schedule_event USING btree (task_type, own_sign, queue_id, event_id);
CREATE INDEX idx_schedule_event_time ON public.schedule_event USING btree (event_time);
CREATE INDEX idx_schedule_failed_item_queue ON public.schedule_failed_item USING btree (task_type, own_sign, partition_version, queue_id, state);
CREATE INDEX idx_schedule_failed_item_time ON public.schedule_failed_item USING btree (next_attempt_at);
CREATE INDEX idx_schedule_queue_cur_server ON public.schedule_queue USING btree (cur_server);
CREATE INDEX idx_schedule_queue_req_server ON public.schedule_queue USING btree (req_server);
CREATE INDEX idx_schedule_run_backfill ON public.schedule_run USING btree (backfill_id, state);
CREATE INDEX idx_schedule_run_dep_upstream ON public.schedule_run_dep USING btree (upstream_run_id);
CREATE INDEX idx_schedule_run_graph ON public.schedule_run USING btree (graph_name, run_id);
CREATE INDEX idx_schedule_run_queue_due ON public.schedule_run_queue USING btree (state, next_attempt_at);
CREATE INDEX idx_schedule_run_state ON public.schedule_run USING btree (task_type, own_sign, state, scheduled_at);
CREATE INDEX idx_schedule_run_trigger ON public.schedule_run USING btree (task_type, own_sign, trigger_name, state, scheduled_at);
CREATE INDEX idx_schedule_server_task ON public.schedule_server USING btree (task_type, own_sign, uuid);
CREATE INDEX idx_schedule_task_after_upstream ON public.schedule_task_after USING btree (upstream);
CREATE INDEX idx_schedule_trigger_due ON public.schedule_trigger USING btree (own_sign, status, next_fire_at);
