/** Ever longer histories of as many projects, signed and delivered, and streams that have read them to the end. */
import { Effect, Layer } from "effect"
import { reading } from "../../../services/lifecycle/CursorReading.ts"
import { EventSigner } from "../../../services/lifecycle/EventSigner.ts"
import { EventLog } from "../../../services/lifecycle/EventLog.ts"
import { LifecycleRetention } from "../../../services/lifecycle/LifecycleRetention.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { somethingFor } from "../../../services/event-streams/StreamDelivery/PrefetchStreams.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { claimDue } from "../../../services/platform/database/Leases.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { clientId, fill as fillProjects, issuer, lived, projectId } from "../../harness/LifecycleSeed.ts"
import { type Area, idOf, platform } from "./Area.ts"

const projects = 100
const publicUrl = new URL("http://127.0.0.1:8080")

const fill = Effect.fnUntraced(function* (rows: number) {
  const { owner } = yield* Database
  yield* fillProjects(projects)
  const now = Date.now()
  // Over the last eighty days: none is old enough to be pruned.
  const step = 80 * 86_400_000 / rows
  const source = owner`(
    select n, ${owner.literal(idOf("ms", "n"))} as id, 'project-' || n % ${projects} as project_id,
      n / ${projects} + 1 as position, to_timestamp(ms / 1000.0) as at
    from (
      select n, (${now - 80 * 86_400_000}::float8 + n * ${step}::float8)::bigint as ms
      from generate_series(0, ${rows - 1}::bigint) n
    ) x) s`
  yield* owner`
    insert into lifecycle_events (id, project_id, epoch, position, digest, prev_digest, body_digest, kind, txn, person_id,
      sub_id, payload, created_at)
    select id, project_id, 1, position, 'sha256:' || md5(n::text), 'sha256:' || md5((n - ${projects})::text), 'sha256:',
      'token-claims-change', id, 'person-' || n / 10, '{}', '{}', at
    from ${source}`
  yield* owner`
    insert into lifecycle_messages (event_id, project_id, epoch, position, kid, message, signed_at, decided_at)
    select id, project_id, 1, position, 'kid', repeat('x', 400), at, at from ${source}`
  yield* owner`
    insert into lifecycle_state (project_id, key, value, position)
    select project_id, 'access/' || n, '{}', position from ${source}`
  yield* owner`
    insert into lifecycle_heads (project_id, epoch, position, digest)
    select project_id, 1, max(position), 'sha256:' || md5(max(n)::text) from ${source} group by project_id`
  yield* owner`insert into lifecycle_signed (project_id, epoch, position)
    select project_id, epoch, position from lifecycle_heads`
  yield* owner`
    insert into lifecycle_streams (id, project_id, service_issuer, service_id, status, status_by, delivery, endpoint_url,
      created_at, updated_at, epoch, position)
    select gen_random_uuid(), h.project_id, ${issuer}, 'service', 'enabled', 'receiver', 'push', 'http://127.0.0.1/',
      to_timestamp(0), to_timestamp(0), h.epoch, h.position from lifecycle_heads h`
  yield* owner`
    insert into lifecycle_stream_messages (id, stream_id, kind, message, created_at, delivered_at)
    select ${owner.literal(idOf("ms", "n"))}, (select id from lifecycle_streams limit 1), 'verification', 'x',
      to_timestamp(ms / 1000.0), to_timestamp(ms / 1000.0)
    from (select n, ${now}::bigint - n % 86400 * 900 as ms from generate_series(1, ${rows}::bigint / 10) n) x`
  yield* owner`vacuum analyze lifecycle_events, lifecycle_messages, lifecycle_state, lifecycle_heads, lifecycle_signed,
    lifecycle_streams, lifecycle_stream_messages`
})

const services = Layer.mergeAll(EventLog.layer, LifecycleRetention.layer, EventSigner.layer(publicUrl)).pipe(
  Layer.provide(SigningKeys.layer),
)

const statements: Area["statements"] = (fixture, run, rows) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.provideMerge(services, platform(fixture, run)))
    return yield* Effect.gen(function* () {
      const database = yield* Database
      const { sql } = database
      const eventLog = yield* EventLog
      const messages = yield* EventSigner
      const retention = yield* LifecycleRetention
      const { between, page, standing } = yield* reading
      const asking = { projectId: projectId(7), issuer, clientId: clientId(7) }
      const half = { epoch: 1, position: Math.floor(rows / projects / 2) }
      const append = (n: number) =>
        Effect.provideService(runOnce(eventLog.append(lived(n % projects, n * 4))), Database, database)
      let turn = 1_000_000_000
      return [
        { name: "lifecycle: append", run: append, descents: 16 },
        {
          name: "lifecycle: look for the unsigned, sign one",
          prepare: Effect.andThen(
            Effect.repeat(messages.signDue, { while: (more) => more }),
            Effect.suspend(() => append(++turn)),
          ),
          run: () => messages.signDue,
          descents: 40,
        },
        { name: "lifecycle: nothing to sign", run: () => messages.signDue, descents: 4 },
        { name: "lifecycle: page after a cursor", run: () => page(asking, half, 40), descents: 10 },
        {
          name: "lifecycle: page at the end",
          run: () => page(asking, { ...half, position: half.position * 2 }, 100),
          descents: 10,
        },
        { name: "lifecycle: acknowledge a place", run: () => standing(asking, half), descents: 10 },
        {
          name: "lifecycle: what an acknowledgement measures",
          run: () => between(asking.projectId, half, half.position - 10),
          descents: 2,
        },
        {
          name: "lifecycle: streams that have something",
          run: () =>
            claimDue(sql, { table: "lifecycle_streams", key: "id", keyType: "uuid" }, {
              leaseMillis: 60_000,
              limit: 32,
              also: sql`and t.delivery = 'push' and ${somethingFor(sql, new Date())}`,
            }),
          descents: projects * 3,
        },
        { name: "lifecycle: prune, nothing over", run: () => retention.prune, descents: projects + 10 },
      ]
    }).pipe(Effect.provide(context))
  })

export const lifecycle: Area = { name: "lifecycle", fill, statements }
