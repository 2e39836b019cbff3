/** The services that follow projects: an issuer with a key set of its own, their tokens, and requests with these. */
import { Effect } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from "jose"
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { listenBelow } from "../programs/ChildProtocol.ts"
import { BenchError } from "./Child.ts"
import * as Fixture from "./LifecycleSeed.ts"

/** The value of LIFECYCLE_ISSUERS, and the access token of a project's service, good for a day. */
export interface Services {
  readonly issuers: string
  readonly token: (project: number) => Effect.Effect<string>
}

/** Serves the issuer's key set until the scope ends. */
export const services = Effect.gen(function* () {
  const { privateKey, publicKey } = yield* Effect.promise(() => generateKeyPair("ES256"))
  const jwk = yield* Effect.promise(() => exportJWK(publicKey))
  const kid = yield* Effect.promise(() => calculateJwkThumbprint(jwk))
  const keys = JSON.stringify({ keys: [{ ...jwk, kid, alg: "ES256", use: "sig" }] })
  const server = createServer((_, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end(keys)
  )
  const port = yield* Effect.acquireRelease(
    Effect.promise(() => listenBelow(server)),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      }),
  )
  return {
    issuers: JSON.stringify([{ issuer: Fixture.issuer, jwks_uri: `http://127.0.0.1:${port}/jwks` }]),
    token: (project) =>
      Effect.promise(() =>
        new SignJWT({ client_id: Fixture.clientId(project) })
          .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid })
          .setIssuer(Fixture.issuer).setSubject(Fixture.clientId(project)).setAudience("service-lifecycle")
          .setIssuedAt().setExpirationTime("1 day").setJti(randomUUID()).sign(privateKey)
      ),
  } satisfies Services
})

/** One request; any status but the expected one is an error. */
export const asked = Effect.fnUntraced(function* (
  url: URL,
  options: { readonly token?: string; readonly body?: unknown; readonly status?: number } = {},
) {
  const { body, status = 200, token } = options
  const [answered, text] = yield* Effect.tryPromise({
    try: async () => {
      const response = await fetch(url, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return [response.status, await response.text()] as const
    },
    catch: (cause) => new BenchError({ message: `${url.pathname}: ${String(cause)}` }),
  })
  if (answered === status) return text
  return yield* new BenchError({ message: `${url.pathname}: ${answered} ${text.slice(0, 400)}` })
})

/** The thumbprints of the keys that the program serves. */
export const pins = (url: string) =>
  Effect.map(asked(new URL("/v1/lifecycle/jwks", url)), (text): ReadonlyArray<string> => {
    const { keys } = JSON.parse(text) as { readonly keys: ReadonlyArray<{ readonly kid: string }> }
    return keys.map(({ kid }) => kid)
  })
