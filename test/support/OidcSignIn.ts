/**
 * A real OpenID provider that people sign in at, and a browser's way through its own pages. Its access tokens are JWTs
 * for the management API, with the sign-in's claims.
 */
import { Effect } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import Provider from "oidc-provider"

export interface SignInProvider {
  readonly issuer: string
  /** The paths of requests that it answered, with their statuses: `POST /token 200`. */
  readonly answered: Array<string>
}

/** Runs until the scope closes; `configuration` is the provider's own, for example its clients. */
export const signInProvider = Effect.fnUntraced(function* (configuration: Record<string, unknown>) {
  const server = createServer()
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", () => resolve()))),
    () => Effect.promise(() => new Promise((resolve) => (server.close(resolve), server.closeAllConnections()))),
  )
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { features, ...rest } = configuration as { readonly features?: Record<string, unknown> }
  const real = new Provider(issuer, {
    features: {
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:service:management",
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: "", audience: "service-management", accessTokenFormat: "jwt" }),
      },
      ...features,
    },
    extraTokenClaims: (context: { oidc: { entities: Record<string, Record<string, unknown> | undefined> } }) => {
      const { AuthorizationCode, RefreshToken } = context.oidc.entities
      const grant = AuthorizationCode ?? RefreshToken
      return grant === undefined
        ? {}
        : { auth_time: grant["authTime"], acr: "urn:service:aal1", sid: grant["sessionUid"] }
    },
    ...rest,
  })
  const handle = real.callback()
  const answered: Array<string> = []
  server.on("request", (request, response) => {
    response.on(
      "finish",
      () => answered.push(`${request.method} ${request.url?.split("?", 1)[0]} ${response.statusCode}`),
    )
    void handle(request, response)
  })
  return { issuer, answered } satisfies SignInProvider
})

/** A form's body, for fetch. */
export const form = (fields: Record<string, string>) => ({
  method: "POST",
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams(fields).toString(),
})

/**
 * Follows the provider's redirects and fills in its pages, as a browser with these cookies would, until it sends the
 * browser to `redirectUri`; returns that address and the prompts that were shown.
 */
export const throughPages = async (
  start: string,
  login: string,
  redirectUri: string,
  jar: Map<string, string> = new Map(),
): Promise<{ readonly location: URL; readonly prompts: ReadonlyArray<string> }> => {
  const prompts: Array<string> = []
  let next: [string, RequestInit] = [start, {}]
  for (let hop = 0; hop < 12; hop++) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ")
    const response = await fetch(next[0], {
      ...next[1],
      headers: { ...next[1].headers as Record<string, string>, cookie },
      redirect: "manual",
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      jar.set(name!, value!)
    }
    const page = await response.text()
    const to = response.headers.get("location")
    if (to === null) {
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
      // Where another one signs in, the provider's page ends the session before by a form that a script sends.
      const [, action] = /forms\[0\]\.submit[^]*action="([^"]+)"/.exec(page) ?? []
      if (prompt === undefined && action !== undefined) {
        const hidden = [...page.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)]
        next = [action, form(Object.fromEntries(hidden.map(([, name, value]) => [name!, value!])))]
        continue
      }
      if (prompt === undefined) throw new Error(page)
      prompts.push(prompt)
      next = [next[0], form({ prompt, login, password: "any" })]
    } else if (to.startsWith(redirectUri)) return { location: new URL(to), prompts }
    else next = [new URL(to, start).href, {}]
  }
  throw new Error("the provider redirects without end")
}
