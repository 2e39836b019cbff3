// Fastify + pg on Node, with response schemas, as its manual advises.
import { createHash } from "node:crypto"
import Fastify from "fastify"
import pg from "pg"

const { authentication, keys, page, total } = JSON.parse(process.env.QUERIES)
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const app = Fastify()
const text = { type: ["string", "null"] }
const item = (properties) => ({ type: "object", properties })
const delivery = item({
  id: text,
  webhook_id: text,
  event_type: text,
  status: text,
  response_status: { type: ["integer", "null"] },
  attempt: { type: "integer" },
  next_retry_at: text,
  created_at: text,
})
const key = item({
  id: text,
  name: text,
  key_prefix: text,
  permissions: { type: "array", items: { type: "string" } },
  is_active: { type: "boolean" },
  last_used_at: text,
  created_at: text,
})
const integer = { type: "integer" }
const list = item({ items: { type: "array", items: delivery }, total: integer, page: integer, limit: integer })

app.decorateRequest("account", null)
app.addHook("onRequest", async (request, reply) => {
  const hash = createHash("sha256").update(request.headers.authorization?.slice(7) ?? "").digest()
  const { rows } = await pool.query({ name: "authentication", text: authentication, values: [hash] })
  if (rows.length === 0) return reply.code(401).send()
  request.account = rows[0]
})
app.get(
  "/v1/api-keys/",
  { schema: { response: { 200: { type: "array", items: key } } } },
  async (request) => (await pool.query({ name: "keys", text: keys, values: [request.account.id] })).rows,
)
app.get("/v1/webhooks/:id/deliveries", { schema: { response: { 200: list } } }, async (request, reply) => {
  const { id } = request.params
  const [counted, rows] = await Promise.all([
    pool.query({ name: "total", text: total, values: [id, request.account.id] }),
    pool.query({ name: "page", text: page, values: [id] }),
  ])
  if (counted.rows.length === 0) return reply.code(404).send()
  return { items: rows.rows, total: counted.rows[0].total, page: 0, limit: 20 }
})
const address = await app.listen({ port: 20000 + Math.floor(Math.random() * 12000), host: "127.0.0.1" })
console.log(JSON.stringify({ event: "listening", port: Number(new URL(address).port), version: process.version }))
