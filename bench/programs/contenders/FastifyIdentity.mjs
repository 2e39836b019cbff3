// Two reads of the identity API in Fastify + pg + jose on Node, with response schemas, as its manual advises.
import Fastify from "fastify"
import { createLocalJWKSet, jwtVerify } from "jose"
import { createHash } from "node:crypto"
import pg from "pg"

const { account, candidates, caller, reviews, roles } = JSON.parse(process.env.QUERIES)
const keys = createLocalJWKSet(JSON.parse(process.env.JWKS))
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const ask = async (name, text, values) => (await pool.query({ name, text, values })).rows
const app = Fastify()

const day = 86_400_000
const text = { type: "string" }
const integer = { type: "integer" }
const flag = { type: "boolean" }
const optional = { type: ["string", "null"] }
const time = { type: "string", format: "date-time" }
const optionalTime = { anyOf: [time, { type: "null" }] }
const list = (items) => ({ type: "array", items })
const object = (properties) => ({ type: "object", properties })

const ownAccount = object({
  person_id: text,
  issuer: text,
  subject: text,
  display_name: optional,
  email: optional,
  email_verified: flag,
  status: text,
  version: integer,
  created_at: time,
  updated_at: time,
  linked_identities: list(object({ issuer: text, subject: text, linked_at: time })),
  memberships: list(
    object({ institution_id: text, institution_name: optional, role: text, state: text, effective: flag }),
  ),
  projects: list(object({ project_id: text, name: optional, relation: text, access_state: text, effective: text })),
  operator: flag,
})
const review = object({
  review_id: text,
  project_id: text,
  person_id: text,
  institution_id: text,
  access: object({ access_id: text, version: integer, digest: text }),
  sponsor_decision: object({ decision_id: text, person_id: text, decided_at: time, digest: text, locked: flag }),
  grant_event: object({ event_id: text, position: integer, digest: text }),
  evidence_digest: text,
  state: text,
  proposed_at: time,
  sponsor_reason: text,
  decision: object({ state: text, at: time }),
  delivery: object({
    state: text,
    event_id: optional,
    queued_at: optionalTime,
    last_attempt_at: optionalTime,
    attempts: integer,
  }),
  acknowledgement: object({
    state: text,
    installed_version: optional,
    cursor: optional,
    acknowledged_at: optionalTime,
  }),
  effective_access: object({ state: text, observed_at: optionalTime, drift: flag }),
  validity: object({ current: flag, reasons: list(text) }),
})
const candidate = object({
  access_id: text,
  access_version: integer,
  person_id: text,
  project_id: text,
  role: text,
  granted_at: time,
  grant_event_id: text,
  proposable: flag,
  blocked_by: list(text),
})
const reviewList = object({
  institution_id: text,
  as_of: time,
  reviews: list(review),
  candidates: list(candidate),
})

// With REMEMBER: a verified token is not verified again for a minute.
const remembered = process.env.REMEMBER === "true" ? new Map() : null
const verified = async (token) => {
  const key = remembered && createHash("sha256").update(token).digest("base64")
  const known = remembered?.get(key)
  if (known !== undefined && Date.now() < known.until) return known.payload
  const { payload } = await jwtVerify(token, keys, {
    issuer: process.env.ISSUER,
    audience: "service-management",
    typ: "at+jwt",
    clockTolerance: 60,
    algorithms: ["RS256", "ES256"],
    requiredClaims: ["iss", "aud", "exp", "iat", "jti", "client_id", "sub"],
  })
  remembered?.set(key, { payload, until: Math.min(Date.now() + 60_000, payload.exp * 1_000) })
  return payload
}

app.decorateRequest("person", null)
app.addHook("onRequest", async (request, reply) => {
  const payload = await verified(request.headers.authorization?.slice(7) ?? "").catch(() => null)
  if (payload === null) return reply.code(401).send()
  const [found] = await ask("caller", caller, [payload.iss, payload.sub])
  if (found === undefined) return reply.code(401).send()
  request.person = found.id
})

app.get("/v1/me", { schema: { response: { 200: ownAccount } } }, async (request) => {
  const [own] = await ask("account", account, [request.person, new Date()])
  const linked = own.linked_identities.map((one) => ({ ...one, linked_at: new Date(one.linked_at) }))
  return { ...own, linked_identities: linked }
})

const reasonsOf = (row, now) => [
  ...(row.access_state === "active" ? [] : ["access_not_active"]),
  ...(row.current_version === row.access_version ? [] : ["access_version_superseded"]),
  ...(row.sponsor_current ? [] : ["sponsor_not_current"]),
  ...(row.membership_ended ? ["membership_ended"] : []),
  ...((row.approved_at === null ? row.proposed_at.getTime() + 7 * day : row.approved_at.getTime() + 365 * day) <= now
    ? ["review_expired"]
    : []),
  ...(row.state === "revoked" ? ["review_revoked"] : []),
]

const acknowledgementOf = (row) =>
  row.acknowledged_at === null
    ? {
      state: row.told === null ? "none" : "pending",
      installed_version: row.installed_version,
      cursor: null,
      acknowledged_at: null,
    }
    : {
      state: "acknowledged",
      installed_version: row.acknowledged_version,
      acknowledged_at: row.acknowledged_at,
      cursor: Buffer.from(`${row.acknowledged_epoch}.${row.acknowledged_position}`).toString("base64url"),
    }

const viewOf = (row, now) => {
  const reasons = reasonsOf(row, now)
  return {
    review_id: row.id,
    project_id: row.project_id,
    person_id: row.person_id,
    institution_id: row.institution_id,
    access: { access_id: row.access_id, version: row.access_version, digest: row.access_digest },
    sponsor_decision: {
      decision_id: row.decision_id,
      person_id: row.proposed_by,
      decided_at: row.proposed_at,
      digest: row.decision_digest,
      locked: true,
    },
    grant_event: {
      event_id: row.grant_event_id,
      position: Number(row.grant_event_position),
      digest: row.grant_event_digest,
    },
    evidence_digest: row.evidence_digest,
    state: row.state,
    proposed_at: row.proposed_at,
    sponsor_reason: row.sponsor_reason,
    decision: { state: row.state, at: row.revoked_at ?? row.approved_at ?? row.proposed_at },
    delivery: {
      state: row.told === null ? "none" : row.delivered_at === null ? "queued" : "delivered",
      event_id: row.told,
      queued_at: row.queued_at,
      last_attempt_at: row.delivered_at,
      attempts: row.delivered_at === null ? 0 : 1,
    },
    acknowledgement: acknowledgementOf(row),
    effective_access: {
      state: row.observed_at === null ? "unknown" : row.access_state === "active" ? "effective" : "not_effective",
      observed_at: row.observed_at,
      drift: row.drift,
    },
    validity: { current: reasons.length === 0, reasons },
  }
}

app.get(
  "/v1/institutions/:institution/access-grant-reviews",
  { schema: { response: { 200: reviewList } } },
  async (request, reply) => {
    const { institution } = request.params
    const now = new Date()
    const held = await ask("roles", roles, [institution, request.person, now])
    if (held.length === 0) return reply.code(404).send()
    const is = (...names) => held.some(({ effective, role }) => effective && names.includes(role))
    if (!is("sponsor", "administrator")) return reply.code(403).send()
    const [listed, open] = await Promise.all([
      ask("reviews", reviews, [institution, now]),
      ask("candidates", candidates, [institution]),
    ])
    const sponsor = is("sponsor")
    const judged = { proposable: sponsor, blocked_by: sponsor ? [] : ["role_required"] }
    return {
      institution_id: institution,
      as_of: now,
      reviews: listed.map((row) => viewOf(row, now.getTime())),
      candidates: open.map((row) => ({ ...row, ...judged })),
    }
  },
)

const address = await app.listen({ port: 20000 + Math.floor(Math.random() * 12000), host: "127.0.0.1" })
console.log(JSON.stringify({ event: "listening", port: Number(new URL(address).port), version: process.version }))
