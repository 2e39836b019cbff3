/** The issuer of people's access tokens: a key set of its own, and tokens of the management API that live a day. */
import { Effect } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from "jose"
import { createServer } from "node:http"
import { listenBelow } from "../programs/ChildProtocol.ts"
import { issuer } from "./IdentityFixture.ts"

export const algorithms = ["RS256", "ES256"] as const
export type Algorithm = (typeof algorithms)[number]

export interface PeopleTokens {
  /** The value of MANAGEMENT_ISSUERS. */
  readonly issuers: string
  /** The key set as JSON, and the private keys, each with its `kid` and `alg`. */
  readonly jwks: string
  readonly keys: Readonly<Record<Algorithm, JWK>>
}

const keyOf = async (alg: Algorithm) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const open = await exportJWK(publicKey)
  const more = { kid: await calculateJwkThumbprint(open), alg, use: "sig" }
  return { open: { ...open, ...more }, secret: { ...await exportJWK(privateKey), ...more } }
}

/** Serves the key set until the scope ends. */
export const peopleTokens = Effect.gen(function* () {
  const [rsa, ec] = yield* Effect.promise(() => Promise.all(algorithms.map(keyOf)))
  const jwks = JSON.stringify({ keys: [rsa!.open, ec!.open] })
  const server = createServer((_, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end(jwks)
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
    issuers: JSON.stringify([{ issuer, jwks_uri: `http://127.0.0.1:${port}/jwks` }]),
    jwks,
    keys: { RS256: rsa!.secret, ES256: ec!.secret },
  } satisfies PeopleTokens
})
