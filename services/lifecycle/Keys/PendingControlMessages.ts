/**
 * Finds undelivered messages of single streams by the key that signed them. The message's header names the key, and
 * each message begins with the same header (Keys/KeyGeneration.ts).
 */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"

/** SQL of whether the message `o` of lifecycle_stream_messages is undelivered and signed by this key. */
export const unsaidUnder = (sql: PgClient.PgClient, kid: string | Statement.Fragment) =>
  sql`(o.delivered_at is null and starts_with(o.message, translate(encode(convert_to(
    '{"alg":"RS256","typ":"secevent+jwt","kid":"' || ${kid} || '"}', 'UTF8'), 'base64'), E'+/=\\n', '-_') || '.'))`
