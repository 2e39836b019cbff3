/**
 * Endpoints as Svix's API lists them (`GET /api/v1/app/{app_id}/endpoint/`), each with its `secret`, which Svix answers at
 * `…/endpoint/{endpoint_id}/secret/`, and, where it has any, its `headers` of `…/headers/`.
 */
import { Buffer } from "node:buffer"
import { type ExportFormat, isMembers, type JsonMembers, rateOf } from "./EndpointFile.ts"

const prefix = "whsec_"

/** The secret as a text, or as the answer `{"key": …}`. */
const secretOf = ({ secret }: JsonMembers) => {
  const key = isMembers(secret) ? secret["key"] : secret
  if (typeof key !== "string" || key === "") {
    return { secret: undefined, faults: ["secret: is not there; Svix answers it apart"] }
  }
  if (/^wh[sp]k_/.test(key)) return { secret: undefined, faults: ["secret: is an asymmetric key; none is used here"] }
  const bytes = Buffer.from(key.startsWith(prefix) ? key.slice(prefix.length) : key, "base64")
  return { secret: prefix + bytes.toString("base64"), faults: [] }
}

/** Headers as names and values, or as the answer of the endpoint's headers. */
const headersOf = ({ headers }: JsonMembers) => {
  if (headers === undefined || headers === null) return { headers: undefined, faults: [] }
  if (!isMembers(headers)) return { headers: undefined, faults: ["headers: are no object of names and values"] }
  const named = isMembers(headers["headers"]) ? headers["headers"] : headers
  const hidden = named === headers ? undefined : headers["sensitive"]
  return {
    headers: Object.entries(named).map(([name, value]) => ({ name, value })),
    faults: Array.isArray(hidden) && hidden.length > 0
      ? ["headers: Svix keeps sensitive values back; write each into the file, and empty `sensitive`"]
      : [],
  }
}

const filled = (list: unknown) => Array.isArray(list) && list.length > 0

const read = (endpoint: JsonMembers) => {
  const { channels, description, disabled, filterTypes, id, rateLimit, url } = endpoint
  const secret = secretOf(endpoint)
  const headers = headersOf(endpoint)
  const limit = typeof rateLimit === "number" ? rateOf(rateLimit) : { rate: undefined, notes: [] }
  return {
    id,
    webhook: {
      url,
      description,
      secret: secret.secret,
      headers: headers.headers,
      rate_limit: limit.rate,
      // Without a filter an endpoint takes every type.
      ...(filled(filterTypes) ? { events: filterTypes } : {}),
      is_active: disabled !== true,
    },
    notes: limit.notes,
    faults: [
      ...secret.faults,
      ...headers.faults,
      ...(filled(channels) ? ["channels: have no counterpart here; remove them for an endpoint of all"] : []),
    ],
  }
}

export const svixExport: ExportFormat = {
  itemsOf: (answer) =>
    Array.isArray(answer)
      ? answer
      : !isMembers(answer)
      ? undefined
      : Array.isArray(answer["data"])
      ? answer["data"]
      : "url" in answer
      ? [answer]
      : undefined,
  goesOn: (answer) => isMembers(answer) && answer["done"] === false,
  read,
}
