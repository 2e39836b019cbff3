/** The audit with ever more records of one month: changes of objects, and refusals that share a record. */
import { Effect, Layer, Stream } from "effect"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { AuditLog } from "../../../services/platform/observability/AuditLog.ts"
import type { AuditQuery } from "../../../services/platform/observability/AuditRecord.ts"
import { AuditPartitions } from "../../../services/platform/observability/AuditPartitions.ts"
import { CurrentRequest, ofClient } from "../../../services/platform/observability/CurrentRequest.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { type Area, idOf, numbered, uuidOf } from "./Area.ts"

/** Records of each object. */
const perObject = 10

const fill = (rows: number) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    yield* (yield* AuditPartitions).upkeep
    const now = new Date()
    const began = Date.UTC(now.getUTCFullYear(), now.getUTCMonth())
    const step = Math.max(1, Math.floor((now.getTime() - began) / rows))
    const object = owner.literal(numbered(`n / ${perObject}`))
    yield* owner`
      insert into audit_records (id, at, request_id, route, action, actor, subject, outcome, details)
      select ${owner.literal(idOf("ms", "n"))}, to_timestamp(ms / 1000.0),
        case n % 100 when 0 then null when 1 then ${ofClient("")} || 'client-' || n else 'request-' || n end, 'GET /v1',
        case n % 100 when 0 then 'request.refused' else 'domain.changed' end, 'account:' || ${object},
        case n % 100 when 0 then null else 'domain:' || ${object} end, case n % 100 when 0 then 'refused' else 'done' end,
        case n % 100 when 0 then jsonb_build_object('request_ids', jsonb_build_array('gathered-' || n, 'also-' || n))
          else jsonb_build_object('transfer_id', ${object}) end
      from (
        select n, ${began}::bigint + n * ${step}::bigint as ms from generate_series(1, ${rows}::bigint) n
      ) x`
    yield* owner`vacuum analyze audit_records`
  }).pipe(Effect.provide(AuditPartitions.layer({ auditDays: 400 })))

const statements: Area["statements"] = (_, __, rows) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.merge(Audit.layer, AuditLog.layer))
    return yield* Effect.gen(function* () {
      const audit = yield* Audit
      const log = yield* AuditLog
      const read = (query: AuditQuery) =>
        Effect.flatMap(Stream.runCollect(log.read(query)), (found) =>
          found.length === 0 ? Effect.fail(`no record of ${JSON.stringify(query)}`) : Effect.void)
      const some = (n: number) =>
        Math.floor(rows / 3 / perObject) + n
      const entry = { actor: "account:bench", subject: "domain:bench", details: {} }
      return [
        {
          name: "audit: a change",
          run: (n: number) =>
            Effect.provideService(
              audit.append({ ...entry, action: "domain.changed", outcome: "done" }),
              CurrentRequest,
              { requestId: `bench-${n}`, route: "GET /v1" },
            ),
          descents: 8,
        },
        {
          name: "audit: a refusal",
          run: () =>
            audit.append({ ...entry, action: "request.refused", outcome: "refused", code: "not_found", status: 404 }),
          descents: 8,
        },
        {
          name: "cli audit --request-id",
          run: (n: number) => read({ requestId: `request-${some(n) * 10 + 7}` }),
          descents: 12,
        },
        {
          name: "cli audit --request-id, refused with others",
          run: (n: number) => read({ requestId: `also-${(1 + n) * 100}` }),
          descents: 12,
        },
        {
          name: "cli audit --subject",
          run: (n: number) => read({ subject: `domain:${uuidOf(some(n))}` }),
          descents: 12,
        },
        {
          name: "cli audit --subject, in details",
          run: (n: number) => read({ subject: `transfer:${uuidOf(some(n))}` }),
          descents: 12,
        },
        { name: "cli audit --subject, id alone", run: (n: number) => read({ subject: uuidOf(some(n)) }), descents: 40 },
        {
          name: "cli audit --subject and --request-id",
          run: (n: number) => read({ subject: `domain:${uuidOf(some(n))}`, requestId: `request-${some(n) * 10 + 7}` }),
          descents: 20,
        },
      ]
    }).pipe(Effect.provide(context))
  })

export const audit: Area = { name: "audit", fill, statements }
