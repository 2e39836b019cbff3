/**
 * Publishes messages and waits for the broker's ack. Subject, size and headers are checked here first, because the
 * broker answers some faults by closing the connection that the whole process shares.
 */
import type { Msg, MsgHdrs, NatsConnection } from "@nats-io/transport-node"
import { errors, headers as makeHeaders } from "@nats-io/transport-node"
import { Result } from "effect"
import { Subject } from "../../../../schemas/bus/Subject.ts"
import { BusError } from "./BusError.ts"

export interface BusPublication {
  readonly subject: string
  readonly data: string | Uint8Array
  /** The broker drops a repeated message of this id within the stream's window; no code may rely on that. */
  readonly msgId?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface BusAck {
  /** The position in the stream. */
  readonly seq: number
  /** Whether the broker had this message id already. */
  readonly duplicate: boolean
}

export type BusOutcome = Result.Result<BusAck, BusError>

const failed = (reason: BusError["reason"], detail: string): BusOutcome => Result.fail(new BusError({ reason, detail }))

const encoder = new TextEncoder()
const headerName = /^[!-9;-~]{1,128}$/
const headerBreak = /[\r\n\0]/

const headersOf = (message: BusPublication): MsgHdrs | string | undefined => {
  const entries = Object.entries(message.headers ?? {})
  if (message.msgId !== undefined) entries.push(["Nats-Msg-Id", message.msgId])
  if (entries.length === 0) return undefined
  const headers = makeHeaders()
  for (const [name, value] of entries) {
    if (!headerName.test(name) || headerBreak.test(value)) return name.slice(0, 64)
    headers.set(name, value)
  }
  return headers
}

const sizeOf = (message: BusPublication, data: Uint8Array): number => {
  let size = data.length + 64 + (message.msgId?.length ?? 0) * 3
  for (const [name, value] of Object.entries(message.headers ?? {})) size += (name.length + value.length) * 3 + 4
  return size
}

const ackOf = (reply: Msg): BusOutcome => {
  const answer = reply.json<
    { seq?: number; duplicate?: boolean; error?: { err_code?: number; description?: string } }
  >()
  if (answer.error !== undefined) {
    return failed("refused", `${answer.error.err_code ?? 0} ${answer.error.description ?? ""}`)
  }
  return typeof answer.seq === "number"
    ? Result.succeed({ seq: answer.seq, duplicate: answer.duplicate ?? false })
    : failed("no-stream", "answered by something that is not a stream")
}

const reasonOf = (error: unknown): BusError["reason"] => {
  if (error instanceof errors.TimeoutError) return "timeout"
  if (error instanceof errors.NoRespondersError) return "no-stream"
  if (error instanceof errors.RequestError) {
    return error.isNoResponders() ? "no-stream" : error.cause instanceof errors.TimeoutError ? "timeout" : "unavailable"
  }
  return "unavailable"
}

/** Publishes one message and waits at most `timeoutMillis` for the ack; never throws. */
export const publishOn = async (
  nc: NatsConnection,
  message: BusPublication,
  timeoutMillis: number,
): Promise<BusOutcome> => {
  if (!Subject.isSubject(message.subject)) return failed("subject", message.subject.slice(0, 64))
  const data = typeof message.data === "string" ? encoder.encode(message.data) : message.data
  const limit = nc.info?.max_payload ?? 1_048_576
  if (sizeOf(message, data) > limit) return failed("size", `${data.length} bytes, the broker takes ${limit}`)
  const headers = headersOf(message)
  if (typeof headers === "string") return failed("headers", headers)
  try {
    return ackOf(
      await nc.request(message.subject, data, {
        timeout: timeoutMillis,
        ...(headers === undefined ? {} : { headers }),
      }),
    )
  } catch (error) {
    return failed(reasonOf(error), error instanceof Error ? error.message : String(error))
  }
}
