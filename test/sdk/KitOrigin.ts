/**
 * A test transmitter over HTTP: a history that it signs, a stream to poll, and faults that a test makes it commit,
 * which the real transmitter never does. Other tests use the real one.
 */
import { createServer, type IncomingMessage } from "node:http"
import type { Json } from "../../sdk/Canonical.ts"
import { genesis } from "../../sdk/Canonical.ts"
import { changesOf, groups, type StateEntry } from "../../sdk/EventProjection.ts"
import {
  audience,
  chained,
  type EventInput,
  issuer,
  keyOf,
  now,
  projectId,
  type SigningKey,
  snapshotOf,
} from "./Tokens.ts"

export const streamId = "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11"

const ssf = (name: string) => `https://schemas.openid.net/secevent/ssf/event-type/${name}`

export interface Signed {
  readonly jti: string
  readonly set: string
}

interface Stored extends Signed {
  readonly input: EventInput
  readonly digest: string
}

/** `until` resolves once a condition holds; it is evaluated after each call of `changed`. */
export const watched = () => {
  const waiting = new Set<() => void>()
  return {
    changed: () => {
      for (const look of [...waiting]) look()
    },
    until: (so: () => boolean) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (!so()) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
  }
}

const bodyOf = async (request: IncomingMessage): Promise<Record<string, unknown>> => {
  let text = ""
  for await (const part of request) text += part
  return text === "" ? {} : JSON.parse(text)
}

export interface Poll {
  readonly ack: ReadonlyArray<string>
  readonly setErrs: Readonly<Record<string, { readonly err: string }>>
}

/** Starts a transmitter on a free port; `end` stops it. */
export const origin = async () => {
  let key: SigningKey = await keyOf("transmitter")
  let served = [key.jwk]
  let epoch = 1
  let history: Array<Stored> = []
  /** Histories of earlier epochs. */
  const former = new Map<number, ReadonlyArray<Stored>>()
  /** Messages that wait to be polled, in their order. */
  let queue: Array<Signed> = []
  let expired = 0
  const acknowledged: Array<string> = []
  const polls: Array<Poll> = []
  const verifications: Array<string> = []
  const requests: Array<string> = []
  const watch = watched()

  const headOf = () => history.at(-1)?.digest ?? genesis

  /** Appends events to the history; returns the signed messages. */
  const append = async (...inputs: ReadonlyArray<EventInput>): Promise<ReadonlyArray<Signed>> => {
    const claims = chained(inputs, epoch, headOf(), history.length + 1)
    const made: Array<Stored> = []
    for (const [i, one] of claims.entries()) {
      const [body] = Object.values(one.events) as unknown as [{ readonly lifecycle: { readonly digest: string } }]
      made.push({ jti: one.jti, set: await key.sign(one), input: inputs[i]!, digest: body.lifecycle.digest })
    }
    history.push(...made)
    watch.changed()
    return made
  }

  /** Appends an event that was signed elsewhere. */
  const appendSigned = (claims: { readonly jti: string; readonly events: object }, set: string, input: EventInput) => {
    const [body] = Object.values(claims.events) as unknown as [{ readonly lifecycle: { readonly digest: string } }]
    history.push({ jti: claims.jti, set, input, digest: body.lifecycle.digest })
    watch.changed()
  }

  /** A stream's own message. */
  const own = async (
    kind: string,
    event: object,
    about: Json = { format: "opaque", id: streamId },
  ): Promise<Signed> => {
    const jti = crypto.randomUUID()
    const events = { [ssf(kind)]: event }
    return { jti, set: await key.sign({ iss: issuer, aud: audience, iat: now, jti, sub_id: about, events }) }
  }

  /** The facts after the whole history, or after an earlier position. */
  const facts = (at = { epoch, position: history.length }): ReadonlyArray<StateEntry> => {
    const state = new Map<string, StateEntry>()
    const before = at.epoch === epoch ? history : former.get(at.epoch)!
    for (const { input: { payload, subId, type } } of before.slice(0, at.position)) {
      for (const { group, id, value } of changesOf({ payload, subId, type })) {
        if (value === null) state.delete(`${group} ${id}`)
        else state.set(`${group} ${id}`, { group, id, value })
      }
    }
    return [...state.values()].sort((a, b) =>
      groups.indexOf(a.group) - groups.indexOf(b.group) || (a.id < b.id ? -1 : 1)
    )
  }

  const snapshot = () => {
    const state: Record<string, Json> = {}
    for (const group of groups) {
      const values = facts().filter((fact) => fact.group === group).map(({ value }) => value)
      state[group] = group === "project" || group === "keys" ? values[0] ?? null : values
    }
    const kids = served.map(({ kid }) => String(kid))
    const at = { epoch, position: history.length, chainHead: headOf() }
    return key.sign(snapshotOf(state, at, kids), { typ: "lifecycle-snapshot+jwt" })
  }

  const answer = async (request: IncomingMessage): Promise<readonly [number, unknown]> => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost")
    requests.push(pathname)
    if (pathname === "/v1/lifecycle/jwks") return [200, { keys: served }]
    if (expired > 0) {
      expired--
      return [401, { code: "invalid_token" }]
    }
    const sent = await bodyOf(request)
    switch (pathname) {
      case `/v1/projects/${projectId}/lifecycle/events`: {
        const after = Number(searchParams.get("after")!.slice(1))
        if (after > history.length) return [409, { code: "cursor_epoch_changed" }]
        const items = history.slice(after, after + Number(searchParams.get("limit"))).map(({ jti, set }, i) => ({
          jti,
          set,
          position: after + i + 1,
        }))
        const last = after + items.length
        if (items.length === 0 && searchParams.get("wait") !== "0") await watch.until(() => history.length > after)
        return [200, { items, cursor: `c${last}`, head: history.length, more: last < history.length }]
      }
      case `/v1/projects/${projectId}/lifecycle/snapshot`:
        return [200, await snapshot()]
      case `/v1/projects/${projectId}/lifecycle/acknowledgements`:
        acknowledged.push(String(sent["cursor"]))
        return [200, { acknowledged_cursor: sent["cursor"] }]
      case "/v1/lifecycle/verify":
        verifications.push(String(sent["state"]))
        return [204, null]
      case `/v1/lifecycle/streams/${streamId}/poll`: {
        const { ack, setErrs } = sent as unknown as Poll
        polls.push({ ack, setErrs })
        queue = queue.filter(({ jti }) => !ack.includes(jti) && !Object.hasOwn(setErrs, jti))
        if (queue.length === 0 && sent["returnImmediately"] !== true) {
          watch.changed()
          await watch.until(() => queue.length > 0)
        }
        return [200, { sets: Object.fromEntries(queue.map(({ jti, set }) => [jti, set])) }]
      }
      default:
        return [404, { code: "not_found" }]
    }
  }

  const server = createServer((request, response) => {
    answer(request).then(([status, body]) => {
      response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body))
      watch.changed()
    }, () => response.writeHead(500).end())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("not listening")

  return {
    acknowledged,
    facts,
    own,
    polls,
    requests,
    append,
    appendSigned,
    verifications,
    watch,
    url: `http://127.0.0.1:${address.port}`,
    key: () => key,
    head: () => history.length,
    epoch: () => epoch,
    /** Truncates the history to a position and raises the epoch, as after a restore. */
    restart: (to: number) => {
      former.set(epoch, history)
      history = history.slice(0, to)
      epoch++
    },
    /** Signs with another key from now on, and serves both. */
    rotate: async () => {
      key = await keyOf("transmitter's next")
      served = [...served, key.jwk]
      return key.kid
    },
    /** Adds messages to the poll queue. */
    queue: (...some: ReadonlyArray<Signed>) => {
      queue.push(...some)
      watch.changed()
    },
    queued: () => queue.length,
    /** Answers the next `requests` requests with 401, as for an expired token. */
    expire: (requests: number) => {
      expired = requests
    },
    end: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
