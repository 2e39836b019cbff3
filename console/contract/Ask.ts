/** Requests to the API by the client, typed by the contract. A screen asks again itself, so nothing is repeated. */
import { callOf, type Method, senderOf } from "../../sdk/client/Transport.ts"
import type { AnswerOf, EndpointName, RequestOf } from "./EndpointTypes.ts"
import { routes } from "./RouteTable.ts"

export { Problem as Refused } from "../../sdk/client/ClientProblem.ts"

export interface AskOptions {
  readonly signal?: AbortSignal
  /** The idempotency key of a write: the same for every try of one form. */
  readonly key?: string
}

/** The token of every request; undefined at the console itself, whose cookie the browser sends. */
export const credential: { token: string | undefined } = { token: undefined }

interface AnyRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
  readonly headers?: Readonly<Record<string, string | undefined>>
}

const call = callOf(senderOf({ token: () => credential.token }), { retries: 0 })

/** Asks one endpoint. Fails with `Refused`, also where the network fails; an aborted request fails as fetch does. */
export const ask = <Name extends EndpointName>(
  name: Name,
  request: RequestOf<Name>,
  { key, signal }: AskOptions = {},
): Promise<AnswerOf<Name>> => {
  const [method, path] = routes[name] as readonly [Method, string]
  const { payload, query, ...parts } = request as AnyRequest
  // A field that is empty asks for nothing.
  const asked = Object.fromEntries(Object.entries(query ?? {}).filter(([, value]) => value !== ""))
  const whole = { ...parts, query: asked, body: payload, idempotencyKey: key, signal }
  return call(method, path.replace(/:(\w+)/g, "{$1}"), whole) as Promise<AnswerOf<Name>>
}
