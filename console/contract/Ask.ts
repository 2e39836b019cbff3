/** Requests to the API, typed by the contract. */
import type { AnswerOf, EndpointName, RequestOf } from "./EndpointTypes.ts"
import { routes } from "./RouteTable.ts"

/** One fault of a request that did not decode. */
export interface Fault {
  readonly loc: ReadonlyArray<string | number>
  readonly msg: string
}

/** The API's refusal, or its absence: `status` 0 where no answer came. */
export class Refused extends Error {
  readonly status: number
  readonly code: string
  readonly faults: ReadonlyArray<Fault>
  /** The members of the problem, beside the ones above. */
  readonly members: Readonly<Record<string, unknown>>

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    const { code, detail, title } = body
    super(typeof detail === "string" ? detail : typeof title === "string" ? title : `The answer was ${status}`)
    this.status = status
    this.code = typeof code === "string" ? code : status === 422 ? "validation_error" : "failed"
    this.faults = Array.isArray(detail) ? detail as ReadonlyArray<Fault> : []
    this.members = body
  }
}

export interface AskOptions {
  readonly signal?: AbortSignal
  /** The idempotency key of a write: the same for every try of one form. */
  readonly key?: string
}

/** The Authorization header of every request; null at the console itself, whose cookie the browser sends. */
export const credential: { authorization: string | null } = { authorization: null }

interface AnyRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly payload?: unknown
  readonly headers?: Readonly<Record<string, string | undefined>>
}

const addressOf = (path: string, { params, query }: AnyRequest): string => {
  const filled = path.replace(/:([a-z_]+)/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ""))
  const asked = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)]]
  )
  return asked.length === 0 ? filled : `${filled}?${new URLSearchParams(asked)}`
}

const bodyOf = async (response: Response): Promise<unknown> => {
  const text = await response.text()
  return /json/.test(response.headers.get("content-type") ?? "") && text !== "" ? JSON.parse(text) : undefined
}

/** Asks one endpoint. Fails with `Refused`, also where the network fails; an aborted request fails as fetch does. */
export const ask = async <Name extends EndpointName>(
  name: Name,
  request: RequestOf<Name>,
  { key, signal }: AskOptions = {},
): Promise<AnswerOf<Name>> => {
  const [method, path] = routes[name] as readonly [string, string]
  const { headers = {}, payload } = request as AnyRequest
  const response = await fetch(addressOf(path, request as AnyRequest), {
    method,
    headers: {
      accept: "application/json",
      ...(credential.authorization === null ? {} : { authorization: credential.authorization }),
      ...(payload === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...Object.fromEntries(
        Object.entries(headers).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]),
      ),
    },
    body: payload === undefined ? null : JSON.stringify(payload),
    signal: signal ?? null,
  }).catch((cause: unknown) => {
    if (signal?.aborted) throw cause
    throw new Refused(0, {
      code: "unreachable",
      detail: "The server does not answer. Check your connection, then try again.",
    })
  })
  const body = await bodyOf(response)
  if (!response.ok) throw new Refused(response.status, (body ?? {}) as Readonly<Record<string, unknown>>)
  return body as AnswerOf<Name>
}
