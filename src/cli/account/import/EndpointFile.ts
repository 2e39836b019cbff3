/**
 * The endpoints of another product's export, as webhooks of this one: read whole before anything is made, so that all
 * faults of a file are told at once. No fault repeats a value, since a file holds secrets. Pure.
 */
import { Result, Schema } from "effect"
import { NewWebhook } from "../../../../schemas/api/WebhooksApi.ts"
import { type EventType, eventTypes } from "../../../../schemas/mail/MailEvent.ts"
import { faultsOf } from "../../../../schemas/Validation/Translate.ts"

export type JsonMembers = Readonly<Record<string, unknown>>

export interface FileFault {
  /** The endpoint, by its place in the file and its id there; null: the file. */
  readonly endpoint: string | null
  readonly message: string
}

/** An endpoint of the file, and the body that makes its webhook. */
export interface FileEndpoint {
  readonly id: string
  readonly webhook: NewWebhook
  /** Changes of what the file says. */
  readonly notes: ReadonlyArray<string>
}

/** One endpoint of another product, in the members of a new webhook; `faults` name parts without a counterpart. */
export interface ReadEndpoint {
  readonly id: unknown
  readonly webhook: JsonMembers
  readonly notes: ReadonlyArray<string>
  readonly faults: ReadonlyArray<string>
}

/** How the files of a product are read. */
export interface ExportFormat {
  /** The endpoints of one answer of its API: of a page, a list or a single endpoint; undefined for anything else. */
  readonly itemsOf: (answer: unknown) => ReadonlyArray<unknown> | undefined
  /** Whether an answer is a page that others follow. */
  readonly goesOn: (answer: unknown) => boolean
  readonly read: (endpoint: JsonMembers, nowMillis: number) => ReadEndpoint
}

export interface ImportOptions {
  /** The types of every webhook, in place of those of the file. */
  readonly events?: ReadonlyArray<EventType> | undefined
  /** Every webhook begins paused. */
  readonly paused: boolean
  readonly nowMillis: number
}

/** Far more than an account has webhooks. */
const most = 1_000

export const isMembers = (value: unknown): value is JsonMembers =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The JSON value of a text; null where it is none. */
const jsonOf = (text: string): { readonly json: unknown } | null => {
  try {
    return { json: JSON.parse(text) }
  } catch {
    return null
  }
}

/** One JSON text, or one a line; null where it is neither. */
const answersOf = (text: string): ReadonlyArray<unknown> | null => {
  const whole = jsonOf(text)
  if (whole !== null) return [whole.json]
  const lines = text.split("\n").filter((line) => line.trim() !== "").map(jsonOf)
  return lines.length === 0 || lines.includes(null) ? null : lines.map((line) => line!.json)
}

const decode = Schema.decodeUnknownResult(NewWebhook, { errors: "all", reportInput: true })

const bodyFaults = (error: Schema.SchemaError, body: unknown): ReadonlyArray<string> =>
  faultsOf(error, "body", body, false).map(({ loc, msg }) => {
    const field = loc.slice(1).join(".")
    return field === "" ? msg : `${field}: ${msg}`
  })

/** The members that have a value. */
const given = (members: JsonMembers): JsonMembers =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))

const idOf = (id: unknown): string | null => typeof id === "string" && /^[\w.-]{1,256}$/.test(id) ? id : null

/** One endpoint of a file, by its place there, or its faults. */
const endpointOf = (
  item: unknown,
  place: string,
  format: ExportFormat,
  { events, nowMillis, paused }: ImportOptions,
): Result.Result<FileEndpoint, ReadonlyArray<FileFault>> => {
  if (!isMembers(item)) return Result.fail([{ endpoint: place, message: "is no object" }])
  const one = format.read(item, nowMillis)
  const id = idOf(one.id)
  const body = given({
    ...one.webhook,
    events: events ?? one.webhook["events"] ?? eventTypes,
    is_active: paused ? false : one.webhook["is_active"],
  })
  const decoded = decode(body)
  const messages = [
    ...(id === null ? ["has no id"] : []),
    ...one.faults,
    ...(Result.isFailure(decoded) ? bodyFaults(decoded.failure, body) : []),
  ]
  if (id !== null && Result.isSuccess(decoded) && messages.length === 0) {
    return Result.succeed({ id, webhook: decoded.success, notes: one.notes })
  }
  const endpoint = id === null ? place : `${place} (${id})`
  return Result.fail(messages.map((message) => ({ endpoint, message })))
}

/** The ids that stand in a file more than once. */
const repeatedIds = (items: ReadonlyArray<unknown>, format: ExportFormat, nowMillis: number) => {
  const ids = items.flatMap((item) => isMembers(item) ? idOf(format.read(item, nowMillis).id) ?? [] : [])
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))]
}

/** The endpoints of a file, or all of its faults. */
export const endpointsOf = (
  text: string,
  format: ExportFormat,
  options: ImportOptions,
): Result.Result<ReadonlyArray<FileEndpoint>, ReadonlyArray<FileFault>> => {
  const ofFile = (message: string): FileFault => ({ endpoint: null, message })
  const answers = answersOf(text)
  if (answers === null) return Result.fail([ofFile("is neither JSON nor JSON lines")])
  const lists = answers.map(format.itemsOf)
  if (lists.includes(undefined)) return Result.fail([ofFile("holds no endpoints of this product")])
  const items = lists.flatMap((list) => list ?? [])
  if (items.length === 0) return Result.fail([ofFile("holds no endpoint")])
  if (items.length > most) return Result.fail([ofFile(`holds more than ${most} endpoints`)])
  const found = items.map((item, at) => endpointOf(item, `endpoint ${at + 1}`, format, options))
  const faults = [
    ...(format.goesOn(answers.at(-1)) ? [ofFile("ends before the last page of the list")] : []),
    ...repeatedIds(items, format, options.nowMillis).map((id) => ofFile(`holds the endpoint ${id} twice`)),
    ...found.flatMap((one) => Result.isFailure(one) ? one.failure : []),
  ]
  return faults.length > 0
    ? Result.fail(faults)
    : Result.succeed(found.flatMap((one) => Result.isSuccess(one) ? [one.success] : []))
}

/** Deliveries a second as a webhook has them: `perSecond` may be a fraction. */
export const rateOf = (perSecond: number): { readonly rate: number; readonly notes: ReadonlyArray<string> } => {
  const rate = Math.min(1_000, Math.max(1, Math.floor(perSecond)))
  return { rate, notes: rate === perSecond ? [] : [`its rate becomes ${rate} a second`] }
}
