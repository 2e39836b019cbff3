/** One request that the reference sends in the visitor's session, what came back, and the same as a command. */
import { credential } from "../contract/Ask.ts"
import { quoted } from "../parts/Quoted.ts"
import type { Operation } from "./ReferenceOperations.ts"

export interface Sent {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string
  readonly millis: number
}

/** The form's content: values of parameters by their names, and the body as it was typed. */
export interface Filled {
  readonly values: Readonly<Record<string, string>>
  readonly body: string
}

/** The most characters of an answer that are shown. */
const most = 100_000

const headersOf = ({ parameters, takesBody }: Operation, { body, values }: Filled, key: string | undefined) => {
  const named = parameters.filter((one) => one.in === "header").map(({ name }) =>
    [name, name === "idempotency-key" ? values[name] || key || "" : values[name] ?? ""] as const
  )
  return Object.fromEntries([
    ...named.filter(([, value]) => value !== ""),
    ...(takesBody && body.trim() !== "" ? [["content-type", "application/json"]] : []),
  ]) as Record<string, string>
}

/** The parameters that a path has to have and lacks. */
export const missing = ({ parameters }: Operation, { values }: Filled): ReadonlyArray<string> =>
  parameters.filter(({ in: place, name, required }) =>
    required && name !== "idempotency-key" && (values[name] ?? "") === "" && place !== "header"
  ).map(({ name }) => name)

export const addressOf = ({ parameters, path }: Operation, { values }: Filled): string => {
  const query = new URLSearchParams(
    parameters.filter((one) => one.in === "query" && (values[one.name] ?? "") !== "").map((
      { name },
    ) => [name, values[name]!]),
  ).toString()
  const filled = path.replace(/\{(\w+)\}/g, (whole, name) => values[name] ? encodeURIComponent(values[name]) : whole)
  return filled + (query && `?${query}`)
}

/** Sends it. The browser adds the session's cookie; a body that is no JSON is sent as it is, and refused. */
export const sent = async (
  operation: Operation,
  filled: Filled,
  key: string | undefined,
  signal: AbortSignal,
): Promise<Sent> => {
  const began = performance.now()
  const { token } = credential
  const response = await fetch(addressOf(operation, filled), {
    method: operation.method,
    headers: {
      ...headersOf(operation, filled, key),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: operation.takesBody && filled.body.trim() !== "" ? filled.body : null,
    signal,
  })
  const text = await response.text()
  const json = /\bjson/.test(response.headers.get("content-type") ?? "") && text !== ""
  const shown = json ? JSON.stringify(JSON.parse(text), null, 2) : text
  return {
    status: response.status,
    headers: [...response.headers],
    body: shown.length > most ? `${shown.slice(0, most)}\n…` : shown,
    millis: Math.round(performance.now() - began),
  }
}

/** The request as a command, with `$TOKEN` for the credential: no secret of this session is in it. */
export const curlOf = (operation: Operation, filled: Filled, origin: string): string => {
  const headers = headersOf(operation, filled, operation.method === "GET" ? undefined : crypto.randomUUID())
  return [
    `curl ${operation.method === "GET" ? "" : `-X ${operation.method} `}${
      quoted(origin + addressOf(operation, filled))
    }`,
    `-H "Authorization: Bearer $TOKEN"`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(operation.takesBody && filled.body.trim() !== "" ? [`-d ${quoted(filled.body)}`] : []),
  ].join(" \\\n  ")
}
