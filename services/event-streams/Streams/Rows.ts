/** Rows of streams, with the events and subjects that each delivers. */
import type { PgClient } from "@effect/sql-pg"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import type { StreamStatus } from "../../../schemas/identity/StreamBodies.ts"
import type { Wanted } from "./StreamSubjects.ts"

export interface StreamRow extends Wanted {
  readonly id: string
  readonly project_id: ProjectId
  readonly service_issuer: string
  readonly service_id: string
  readonly status: StreamStatus
  readonly status_by: "receiver" | "transmitter"
  readonly status_reason: string | null
  readonly delivery: "push" | "poll"
  /** The receiver's endpoint, of a pushed stream only. */
  readonly endpoint_url: string | null
  /** Sealed: `authorizationPlace`. */
  readonly authorization_header: Uint8Array | null
  readonly vault_kid: string | null
  readonly description: string | null
  readonly version: number
  readonly epoch: number
  readonly position: bigint
}

/** SQL of a `StreamRow`'s columns, over the alias `t` of lifecycle_streams. */
export const streamColumns = (sql: PgClient.PgClient) =>
  sql.literal(`t.id::text as id, t.project_id, t.service_issuer, t.service_id, t.status, t.status_by, t.status_reason,
    t.delivery, t.endpoint_url, t.authorization_header, t.vault_kid, t.events_requested, t.description, t.version,
    t.epoch, t.position,
    coalesce((
      select jsonb_agg(jsonb_build_object('subject', x.subject, 'included', x.included) order by x.said)
      from lifecycle_stream_subjects x where x.stream_id = t.id
    ), '[]') as subjects`)

/** Where a stream's authorization header is sealed. */
export const authorizationPlace = (streamId: string) => ({
  table: "lifecycle_streams",
  column: "authorization_header",
  row: streamId,
})
