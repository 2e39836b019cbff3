/**
 * Reads along on a program's bus: every message that the program says must be as its own `/v1/asyncapi.json` describes
 * it, without a member that the document does not name. Messages that publishers say are the tests' own, often bad.
 */
import { assert } from "@effect/vitest"
import { connect, type Msg, type MsgHdrs } from "@nats-io/transport-node"
import { Ajv, type ValidateFunction } from "ajv"
import { Effect, type Scope } from "effect"
import { decodeJwt } from "jose"
import { type BrokerPlace, optionsOf } from "../../support/BrokerAccess.ts"
import type { ApiClient } from "./ApiClient.ts"

interface AsyncApi {
  readonly channels: Readonly<Record<string, { readonly address: string; readonly messages: object }>>
  readonly operations: Readonly<
    Record<string, { readonly action: string; readonly channel: { readonly $ref: string } }>
  >
  readonly components: {
    readonly messages: Readonly<
      Record<string, {
        readonly payload: { readonly contentSchema?: unknown }
        readonly headers: { readonly properties: object }
      }>
    >
  }
}

interface Documented {
  /** A message's fault; null for a message as the document says, and for every message of a publisher. */
  readonly fault: (message: Msg) => string | null
}

/** The document with every object closed: it names each member that is sent. */
const closed = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(closed)
  if (typeof node !== "object" || node === null) return node
  const members = Object.entries(node).map(([name, value]) => [name, closed(value)])
  const own = Object.fromEntries(members)
  return "properties" in own && own["additionalProperties"] === true ? { ...own, additionalProperties: false } : own
}

const headersOf = (headers: MsgHdrs | undefined) => {
  const names = headers?.keys() ?? []
  return Object.fromEntries(names.map((name) => [name, headers!.get(name)]))
}

/** Headers of NATS itself, which no document names. */
const ofNats = /^Nats-(?!Msg-Id$)/

const reading = (document: AsyncApi): Documented => {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  ajv.addSchema({ ...closed(document) as object, $id: "bus" })
  const compiled = new Map<string, ValidateFunction>()
  const validator = (path: string) => {
    const known = compiled.get(path) ?? ajv.compile({ $ref: `bus#/components/messages/${path}` })
    compiled.set(path, known)
    return known
  }
  const operations = Object.values(document.operations)
  const said = new Set(operations.flatMap(({ action, channel }) => action === "send" ? [channel.$ref] : []))
  const channels = Object.entries(document.channels).map(([name, { address, messages }]) => ({
    name,
    subject: new RegExp(`^${address.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^.]+")}$`),
    messages: Object.keys(messages),
    said: said.has(`#/channels/${name}`),
  }))

  const payloadFault = (path: string, message: Msg): string | null => {
    const { payload } = document.components.messages[path]!
    const signed = payload.contentSchema !== undefined
    const text = message.string()
    const matches = validator(`${path}/payload`)
    if (!matches(signed ? text : JSON.parse(text))) return JSON.stringify(matches.errors)
    if (!signed) return null
    const claims = validator(`${path}/payload/contentSchema`)
    return claims(decodeJwt(text)) ? null : JSON.stringify(claims.errors)
  }

  const headerFault = (path: string, message: Msg): string | null => {
    const own = Object.entries(headersOf(message.headers)).filter(([name]) => !ofNats.test(name))
    const named = document.components.messages[path]!.headers.properties
    const unknown = own.map(([name]) => name).filter((name) => !(name in named))
    if (unknown.length > 0) return `headers ${unknown.join(", ")}`
    const matches = validator(`${path}/headers`)
    return matches(Object.fromEntries(own)) ? null : JSON.stringify(matches.errors)
  }

  return {
    fault: (message) => {
      const channel = channels.find(({ subject }) => subject.test(message.subject))
      if (channel === undefined) return `${message.subject} is no channel`
      if (!channel.said) return null
      // A channel of several messages names each by its subject: the kind.
      const kind = channel.messages.find((name) => message.subject.split(".").includes(name)) ?? channel.messages[0]!
      const path = `${channel.name}.${kind}`
      const fault = payloadFault(path, message) ?? headerFault(path, message)
      return fault === null ? null : `${message.subject} as ${path}: ${fault}\n${message.string().slice(0, 1_000)}`
    },
  }
}

/** Documents that were read before: every program of a run has the same one. */
const read = new Map<string, Documented>()

/**
 * Subscribes before the program starts; `check` is called once it has started. When the scope closes, everything that
 * was said meanwhile is judged, and a message that is not as the document says is a defect.
 */
export const documentedMessages = Effect.fnUntraced(function* (
  place: BrokerPlace,
): Effect.fn.Return<{ readonly check: (api: ApiClient) => Effect.Effect<void> }, never, Scope.Scope> {
  const faults: Array<string> = []
  const waiting: Array<Msg> = []
  let documented: Documented | null = null
  const judge = (message: Msg) => {
    if (documented === null) return void waiting.push(message)
    const fault = documented.fault(message)
    if (fault !== null && faults.length < 5) faults.push(fault)
  }
  yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const nc = await connect({ ...optionsOf(place), maxReconnectAttempts: -1, reconnectTimeWait: 100 })
      for (const root of ["webhooks", "transfers", "lifecycle", "notifications", "mailer", "directory"]) {
        nc.subscribe(`${root}.v1.>`, { callback: (_, message) => judge(message) })
      }
      await nc.flush()
      return nc
    }),
    (nc) =>
      Effect.andThen(
        Effect.promise(() => nc.close().catch(() => {})),
        Effect.sync(() => assert.deepStrictEqual(faults, [])),
      ),
  )
  return {
    check: Effect.fnUntraced(function* (api: ApiClient) {
      const { json, status, text } = yield* api.get("/v1/asyncapi.json")
      // The version before this one, which the test of upgrades starts, has no such document.
      if (status === 404) documented = { fault: () => null }
      else {
        assert.strictEqual(status, 200, text)
        documented = read.get(text) ?? reading(json)
        read.set(text, documented)
      }
      for (const message of waiting.splice(0)) judge(message)
    }),
  }
})
