/**
 * Identity providers that transmit security events: one server on loopback with their keys, their metadata, and what a
 * receiver polls.
 */
import { Effect } from "effect"
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"

export const audience = "https://bailiwick.example"
export const caep = (name: string) => `https://schemas.openid.net/secevent/caep/event-type/${name}`
export const risc = (name: string) => `https://schemas.openid.net/secevent/risc/event-type/${name}`

export const pair = Effect.fnUntraced(function* (alg: string, kid: string) {
  return yield* Effect.promise(async () => {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    return { alg, kid, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } }
  })
})
export type Pair = Effect.Success<ReturnType<typeof pair>>

export const signed = (
  { alg, kid, privateKey }: Pick<Pair, "alg" | "kid" | "privateKey">,
  claims: object,
  header: object = {},
) =>
  Effect.promise(() =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg, kid, typ: "secevent+jwt", ...header }).sign(privateKey)
  )

/** A request of a poll, and its answer. */
export interface Polled {
  readonly authorization: string | undefined
  readonly body: Readonly<Record<string, unknown>>
}

/** What a path answers to a body: a status and JSON. */
export type Answers = (polled: Polled) => readonly [status: number, body: unknown]

const read = async (request: IncomingMessage) => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts).toString()
}

/** A server that answers what `paths` has at the time; `url` has no slash at its end. */
export const serving = Effect.fnUntraced(function* (paths: Map<string, Answers>) {
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(async (request, response) => {
        const text = await read(request)
        const body = text === "" ? {} : JSON.parse(text) as Record<string, unknown>
        const answer = paths.get(request.url ?? "")?.({ body, authorization: request.headers.authorization })
        const [status, json] = answer ?? [404, {}]
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json))
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => (server.closeAllConnections(), server.close())),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

/** The claims of an event about a person, as a transmitter makes them. */
export const eventClaims = (
  iss: string,
  type: string,
  subject: { readonly issuer: string; readonly subject: string },
  more: { readonly payload?: object; readonly claims?: object } = {},
) => ({
  iss,
  aud: audience,
  iat: Math.floor(Date.now() / 1_000),
  jti: randomUUID(),
  sub_id: { format: "iss_sub", iss: subject.issuer, sub: subject.subject },
  events: { [type]: { ...more.payload } },
  ...more.claims,
})
