/**
 * A stream's configuration (Shared Signals Framework 1.0, 8.1.1): creates, shows, changes and deletes it. Each change
 * and its audit record are one transaction, in which the receiver's grants are locked before the stream. While the
 * installation is held no message may go to a new endpoint: the grant may be one that was revoked in the lost time.
 */
import { Clock, Effect, Redacted, Result } from "effect"
import * as Wire from "../../../schemas/identity/StreamBodies.ts"
import { MalformedRequest } from "../../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../../schemas/problems/StreamProblems.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { WakeUps } from "../../platform/messaging/WakeUps.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { mustBeOpen } from "../../platform/database/Installation.ts"
import { isClosedToOlder } from "../../platform/database/OlderPrograms.ts"
import { Outbound } from "../../platform/Outbound.ts"
import { run } from "../../platform/database/UnitOfWork.ts"
import { Vault } from "../../platform/security/Vault.ts"
import type { Receiver } from "../../lifecycle/GrantCheck.ts"
import { audienceOf } from "../../lifecycle/EventSigner.ts"
import { lifecycleTopic } from "../../lifecycle/EventLog.ts"
import { authorizationPlace, type StreamRow } from "./Rows.ts"
import { visibleStreams } from "./ReceiverAccess.ts"
import { deliversTwins } from "./StreamSubjects.ts"
import { configurationOf, mismatchesOf, pollUrl, projectOf } from "./StreamJson.ts"

/** The first version of the program that knows twins (ScimTwin.ts). */
export const knowsTwins = 155

/** The delivery that a receiver asks for, checked. */
interface Wanted {
  readonly delivery: "push" | "poll"
  readonly endpoint_url: string | null
  readonly authorization: Redacted.Redacted | null
}

const polled: Wanted = { delivery: "poll", endpoint_url: null, authorization: null }

const secretOf = (authorization: Redacted.Redacted | null) =>
  authorization === null ? null : Redacted.value(authorization)

/** Records a receiver's change of a stream in the audit. */
export const streamAudit = Effect.map(
  Audit,
  (audit) =>
  (action: string, { clientId, issuer }: Receiver, stream: Pick<StreamRow, "id" | "project_id">, status?: string) =>
    audit.append({
      action: `lifecycle-stream.${action}`,
      actor: `service:${issuer} ${clientId}`,
      subject: `lifecycle-stream:${stream.id}`,
      outcome: "done",
      details: { project: stream.project_id, ...(status === undefined ? {} : { status }) },
    }),
)

/** `perReceiver`: streams that a receiver may have of one project. */
export const streamConfigurations = Effect.fnUntraced(function* (publicUrl: URL, perReceiver: number) {
  const { sql } = yield* Database
  const wakeUps = yield* WakeUps
  const ids = yield* Ids
  const outbound = yield* Outbound
  const vault = yield* Vault
  const visible = yield* visibleStreams
  const recorded = yield* streamAudit

  const wantedOf = (asked: Wire.DeliveryRequest | undefined): Effect.Effect<Wanted, MalformedRequest> => {
    if (asked === undefined || asked.method === Wire.poll) return Effect.succeed(polled)
    const checked = outbound.check(asked.endpoint_url)
    if (Result.isFailure(checked)) {
      return Effect.fail(new MalformedRequest({ detail: `delivery.endpoint_url: ${checked.failure.message}` }))
    }
    const { authorization_header: header, endpoint_url } = asked
    return Effect.succeed({
      delivery: "push",
      endpoint_url,
      authorization: header === undefined ? null : Redacted.make(header),
    })
  }

  const sealed = (streamId: string, { authorization }: Wanted) =>
    authorization === null ? null : vault.seal(authorization, authorizationPlace(streamId))

  const authorizationOf = ({ authorization_header: bytes, id, vault_kid: kid }: StreamRow) =>
    bytes === null || kid === null ? null : vault.open({ kid, bytes }, authorizationPlace(id))

  const shown = (row: StreamRow) => configurationOf(row, authorizationOf(row), publicUrl)

  const matching = (sent: Partial<Wire.StreamChange>, stands: Wire.StreamConfiguration, address: string | null) => {
    const properties = mismatchesOf(sent, stands, address)
    return properties.length === 0 ? Effect.void : Effect.fail(new Problems.SuppliedMismatch({ properties }))
  }

  /** SQL of an array of texts, or of null. */
  const texts = (list: ReadonlyArray<string> | null) =>
    list === null ? sql`null::text[]` : sql`array(select jsonb_array_elements_text(${sql.json(list)}))`

  /** A program that knows no twins would pass the events by, and nothing would deliver them later. */
  const mustKnowTwins = Effect.fnUntraced(function* (
    requested: ReadonlyArray<string> | null,
    before: ReadonlyArray<string> | null,
  ) {
    if (!deliversTwins(requested) || deliversTwins(before) || (yield* isClosedToOlder(sql, knowsTwins))) return
    return yield* new MalformedRequest({
      detail: "events_requested: events of RFC 9967 are given once no program of a version before may run: " +
        "the operator ends the upgrade",
    })
  })

  /** The project whose audience is named, or the only project of the receiver. */
  const projectFor = Effect.fnUntraced(function* (receiver: Receiver, aud: Wire.StreamCreation["aud"]) {
    const projects = yield* visible.projectsOf(receiver)
    const [only, ...others] = projects
    if (only !== undefined && aud === undefined) {
      return others.length === 0 ? only : yield* new Problems.AudienceRequired({ audiences: projects.map(audienceOf) })
    }
    const [named, ...more] = new Set(typeof aud === "string" ? [aud] : aud)
    const project = named === undefined || more.length > 0 ? null : projectOf(named)
    if (aud !== undefined && project === null) return yield* new Problems.SuppliedMismatch({ properties: ["aud"] })
    // The answer is the same whether such a project exists or not.
    return projects.find((id) => id === project) ?? (yield* new Problems.CapabilityRequired({ scope: "stream.manage" }))
  })

  const create = Effect.fn("Streams.create")(function* (receiver: Receiver, asked: Wire.StreamCreation) {
    const projectId = yield* projectFor(receiver, asked.aud)
    const wanted = yield* wantedOf(asked.delivery)
    return yield* run(Effect.gen(function* () {
      yield* visible.lockGrants({ ...receiver, projectId })
      yield* mustBeOpen(sql)
      const [owned] = yield* sql<{ n: number }>`
        select count(*)::int as n from lifecycle_streams
        where project_id = ${projectId} and service_issuer = ${receiver.issuer} and service_id = ${receiver.clientId}`
      if (owned!.n >= perReceiver) {
        return yield* new Problems.StreamLimit({ detail: `A receiver may have ${perReceiver} streams of a project.` })
      }
      const id = yield* ids.next
      const now = new Date(yield* Clock.currentTimeMillis)
      const made = {
        id,
        project_id: projectId,
        delivery: wanted.delivery,
        endpoint_url: wanted.endpoint_url,
        events_requested: asked.events_requested === undefined ? null : [...new Set(asked.events_requested)],
        description: asked.description ?? null,
      }
      yield* mustKnowTwins(made.events_requested, null)
      const configuration = configurationOf(made, wanted.authorization, publicUrl)
      yield* matching(asked, configuration, null)
      const header = sealed(id, wanted)
      yield* sql`
        insert into lifecycle_streams (id, project_id, service_issuer, service_id, status, status_by, delivery,
          endpoint_url, authorization_header, vault_kid, events_requested, description, created_at, updated_at,
          epoch, position)
        select ${id}::uuid, p.id, ${receiver.issuer}::text, ${receiver.clientId}::text, 'enabled', 'receiver',
          ${made.delivery}::text, ${made.endpoint_url}::text, ${header?.bytes ?? null}::bytea,
          ${header?.kid ?? null}::text, ${texts(made.events_requested)}, ${made.description}::text, ${now}, ${now},
          coalesce(h.epoch, (select epoch from installation)), coalesce(h.position, 0)
        from projects p left join lifecycle_heads h on h.project_id = p.id where p.id = ${projectId}`
      yield* recorded("created", receiver, made)
      return configuration
    }))
  })

  const change = Effect.fn("Streams.change")(
    function* (receiver: Receiver, how: "update" | "replace", asked: Wire.StreamChange) {
      const delivery = asked.delivery !== undefined || how === "replace" ? yield* wantedOf(asked.delivery) : null
      return yield* run(Effect.gen(function* () {
        const row = yield* visible.locked(receiver, asked.stream_id)
        const { id } = row
        const before = authorizationOf(row)
        yield* matching(asked, shown(row), pollUrl(publicUrl, id))
        const wanted = delivery ?? { ...row, authorization: before }
        const kept = how === "update" ? row : { events_requested: null, description: null }
        const made = {
          id,
          project_id: row.project_id,
          delivery: wanted.delivery,
          endpoint_url: wanted.endpoint_url,
          events_requested: asked.events_requested === undefined
            ? kept.events_requested
            : [...new Set(asked.events_requested)],
          description: asked.description ?? kept.description,
        }
        yield* mustKnowTwins(made.events_requested, row.events_requested)
        const header = sealed(id, wanted)
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`
          update lifecycle_streams set delivery = ${made.delivery}, endpoint_url = ${made.endpoint_url},
            authorization_header = ${header?.bytes ?? null}, vault_kid = ${header?.kid ?? null},
            events_requested = ${texts(made.events_requested)}, description = ${made.description}, updated_at = ${now},
            version = version + 1
          where id = ${id}::uuid`
        const moved = wanted.delivery !== row.delivery || wanted.endpoint_url !== row.endpoint_url ||
          secretOf(wanted.authorization) !== secretOf(before)
        if (moved) {
          yield* mustBeOpen(sql)
          // Failures of the old endpoint say nothing about the new one, and a POST under way to it must settle nothing.
          yield* sql`
            update lifecycle_streams set attempts = 0, not_before = 'epoch', last_error = null, failing_since = null,
              reached = null, claim = null, lease_until = null
            where id = ${id}::uuid`
          yield* sql`delete from lifecycle_stream_failing where stream_id = ${id}::uuid`
          yield* sql.afterCommit(wakeUps.notify(lifecycleTopic))
        }
        yield* recorded("changed", receiver, row)
        return configurationOf(made, wanted.authorization, publicUrl)
      }))
    },
  )

  const remove = Effect.fn("Streams.remove")(function* (receiver: Receiver, streamId: string) {
    yield* run(Effect.gen(function* () {
      const row = yield* visible.locked(receiver, streamId)
      yield* sql`delete from lifecycle_streams where id = ${row.id}::uuid`
      yield* recorded("deleted", receiver, row)
    }))
  })

  return {
    create,
    change,
    remove,
    read: (receiver: Receiver, streamId: string) => Effect.map(visible.one(receiver, streamId), shown),
    list: (receiver: Receiver) => Effect.map(visible.all(receiver), (rows) => rows.map(shown)),
  }
})
