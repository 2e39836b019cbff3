/** A real OpenID provider, with dynamic registration and its management (RFC 7591, RFC 7592), on a port of its own. */
import { Effect } from "effect"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { exportJWK, generateKeyPair } from "jose"
import Provider from "oidc-provider"

export const initialAccessToken = "initial-access-token"

/** What a test does to requests before the provider sees them, or to answers before the client does. */
export interface Interference {
  /** Where set, the client gets `instead` before the provider sees the request, or after it has answered. */
  cut: "before" | "after" | null
  /** The client's answer; by default its connection is cut. */
  instead: (response: ServerResponse) => void
  /** A read, too, hands out a new management token and invalidates the old one. */
  renews: boolean
  /** Requests that the provider has carried out. */
  readonly seen: Array<string>
}

const listening = (server: Server) =>
  Effect.callback<number>((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
  })

/** A client as the provider's own operator sees it. */
export interface Made {
  readonly client_id: string
  /** The reference from its request. */
  readonly software_id: string
  readonly registration_client_uri: string
  /** The last management token that was handed out. */
  registration_access_token: string
  readonly client_secret?: string
  live: boolean
}

/** Runs until the scope closes. */
export const oidcProvider = Effect.gen(function* () {
  const server = yield* Effect.acquireRelease(
    Effect.sync(() => createServer()),
    (server) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      }),
  )
  const url = `http://127.0.0.1:${yield* listening(server)}`
  const jwk = yield* Effect.promise(async () => {
    const { privateKey } = await generateKeyPair("RS256", { extractable: true })
    return { ...(await exportJWK(privateKey)), use: "sig", alg: "RS256" }
  })
  const provider = new Provider(url, {
    jwks: { keys: [jwk] },
    cookies: { keys: ["a key of the tests"] },
    scopes: ["openid", "profile", "email"],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      backchannelLogout: { enabled: true },
      registration: { enabled: true, initialAccessToken },
      registrationManagement: { enabled: true, rotateRegistrationAccessToken: true },
    },
    extraClientMetadata: { properties: ["software_id"] },
  })
  const interference: Interference = {
    cut: null,
    instead: (response) => void response.socket?.destroy(),
    renews: false,
    seen: [],
  }
  provider.use(async (context, next) => {
    await next()
    const { method, oidc, path, status } = context
    if (!interference.renews || method !== "GET" || status !== 200 || !path.startsWith("/reg/")) return
    const { Client: client, RegistrationAccessToken: old } = oidc.entities
    await old.destroy()
    context.body["registration_access_token"] = await new provider.RegistrationAccessToken({ client }).save()
  })
  const made: Array<Made> = []
  provider.on("registration_create.success", ({ body }) => void made.push({ ...body as unknown as Made, live: true }))
  provider.on("registration_delete.success", (_, { clientId }) => {
    for (const one of made) if (one.client_id === clientId) one.live = false
  })
  provider.on("registration_update.success", ({ body }, { clientId }) => {
    const token = String(body["registration_access_token"])
    for (const one of made) if (one.client_id === clientId) one.registration_access_token = token
  })
  const handle = provider.callback()
  server.on("request", (request, response) => {
    const { cut, instead } = interference
    if (cut === "before") {
      interference.seen.push(`${request.method} refused`)
      return instead(response)
    }
    if (cut === "after") {
      const end = response.end.bind(response)
      response.end = (() => {
        interference.seen.push(`${request.method} cut`)
        response.end = end
        for (const name of response.getHeaderNames()) response.removeHeader(name)
        instead(response)
        return response
      }) as typeof response.end
    } else response.on("finish", () => interference.seen.push(`${request.method} ${response.statusCode}`))
    void handle(request, response)
  })
  return { url, registrationEndpoint: `${url}/reg`, interference, made }
})
