/**
 * Endpoints as Convoy's API lists them (`GET /api/v1/projects/{project_id}/endpoints`), secrets included. The types of an
 * endpoint stand in its subscriptions, so each webhook takes all, or those of `--events`.
 *
 * Convoy signs with the bytes of the secret's text. The webhook's secret is `whsec_` and the base64 of these bytes, so
 * that `webhook-signature` is made with the key that the endpoint already has.
 */
import { Buffer } from "node:buffer"
import { type ExportFormat, isMembers, type JsonMembers, rateOf } from "./EndpointFile.ts"

const leastBytes = 24
const mostBytes = 64

/** Convoy writes a time that is not set as null, an empty text, or the year 1. */
const isSet = (time: unknown): time is string => typeof time === "string" && time !== "" && !time.startsWith("0001-")

/** The secret that signs: the one that does not expire, otherwise the one that expires last. */
const secretOf = ({ secrets }: JsonMembers, nowMillis: number) => {
  const all = (Array.isArray(secrets) ? secrets : []).filter(isMembers)
    .filter(({ deleted_at, value }) => typeof value === "string" && value !== "" && !isSet(deleted_at))
  const endOf = ({ expires_at }: JsonMembers) => isSet(expires_at) ? Date.parse(expires_at) : Infinity
  const [current] = all.filter((one) => endOf(one) > nowMillis).sort((a, b) => endOf(b) - endOf(a))
  if (current === undefined) return { secret: undefined, faults: ["secrets: none is there that has not expired"] }
  const bytes = Buffer.from(String(current["value"]), "utf8")
  return bytes.length < leastBytes || bytes.length > mostBytes
    ? { secret: undefined, faults: [`secrets: the current one should have ${leastBytes} to ${mostBytes} bytes`] }
    : { secret: `whsec_${bytes.toString("base64")}`, faults: [] }
}

const authenticationOf = ({ authentication, mtls_client_cert }: JsonMembers) => {
  const certificate = isMembers(mtls_client_cert) ? ["mtls_client_cert: has no counterpart here"] : []
  const nothing = { authentication: {}, faults: certificate }
  if (!isMembers(authentication)) return nothing
  const { api_key, basic_auth, type } = authentication
  if (type === "api_key" && isMembers(api_key)) {
    const { header_name: name, header_value: value } = api_key
    return name === "" || name === undefined ? nothing : { ...nothing, authentication: { headers: [{ name, value }] } }
  }
  if (type === "basic_auth" && isMembers(basic_auth)) {
    return {
      ...nothing,
      authentication: { basic_auth: { username: basic_auth["username"], password: basic_auth["password"] } },
    }
  }
  return type === undefined || type === "" || type === "api_key"
    ? nothing
    : { ...nothing, faults: [...certificate, "authentication: its type has no counterpart here"] }
}

const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 }

/** Seconds, as a number or as a duration of Go (`1m0s`); null where it is neither. */
const secondsOf = (duration: unknown): number | null => {
  if (typeof duration === "number") return duration > 0 ? duration : null
  if (typeof duration !== "string" || !/^(?:\d+[hms])+$/.test(duration)) return null
  const parts = [...duration.matchAll(/(\d+)([hms])/g)]
  return parts.reduce((total, [, n, unit]) => total + Number(n) * units[unit!]!, 0) || null
}

const limitOf = ({ rate_limit, rate_limit_duration }: JsonMembers) => {
  if (typeof rate_limit !== "number" || rate_limit <= 0) return { rate: undefined, notes: [], faults: [] }
  const seconds = secondsOf(rate_limit_duration)
  return seconds === null
    ? { rate: undefined, notes: [], faults: ["rate_limit_duration: should be seconds, or a time such as 1m"] }
    : { ...rateOf(rate_limit / seconds), faults: [] }
}

const textOf = (...texts: ReadonlyArray<unknown>) => texts.find((text) => typeof text === "string" && text !== "")

const read = (endpoint: JsonMembers, nowMillis: number) => {
  const secret = secretOf(endpoint, nowMillis)
  const limit = limitOf(endpoint)
  const { authentication, faults } = authenticationOf(endpoint)
  const { description, name, status, target_url, title, uid, url } = endpoint
  return {
    id: uid,
    webhook: {
      url: url ?? target_url,
      description: textOf(description, name, title),
      secret: secret.secret,
      rate_limit: limit.rate,
      ...authentication,
      is_active: status !== "inactive" && status !== "paused",
    },
    notes: limit.notes,
    faults: [...secret.faults, ...limit.faults, ...faults],
  }
}

/** The page within Convoy's envelope. */
const pageOf = (answer: unknown) => isMembers(answer) && isMembers(answer["data"]) ? answer["data"] : answer

export const convoyExport: ExportFormat = {
  itemsOf: (answer) => {
    const page = pageOf(answer)
    if (Array.isArray(page)) return page
    if (!isMembers(page)) return undefined
    return Array.isArray(page["content"]) ? page["content"] : "uid" in page ? [page] : undefined
  },
  goesOn: (answer) => {
    const page = pageOf(answer)
    const pagination = isMembers(page) ? page["pagination"] : undefined
    return isMembers(pagination) && pagination["has_next_page"] === true
  },
  read,
}
