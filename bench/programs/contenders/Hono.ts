/** Hono + postgres.js, served by the runtime's own server: Deno.serve on Deno. */
import { Hono } from "hono"
import postgres from "postgres"
import { authentication, hashOf, keys, page, total } from "./ReadQueries.ts"
import { say, variable } from "../ChildProtocol.ts"

interface Serve {
  readonly serve: (
    options: { readonly hostname: string; readonly port: number; readonly onListen: () => void },
    handler: (request: Request) => Response | Promise<Response>,
  ) => unknown
}

const sql = postgres(variable("DATABASE_URL"), { max: 10 })
const app = new Hono<{ Variables: { account: string } }>()

app.use(async (c, next) => {
  const [row] = await sql.unsafe(authentication, [hashOf(c.req.header("authorization"))], { prepare: true })
  if (row === undefined) return c.body(null, 401)
  c.set("account", row["id"])
  return next()
})
app.get("/v1/api-keys/", async (c) => c.json(await sql.unsafe(keys, [c.get("account")], { prepare: true })))
app.get("/v1/webhooks/:id/deliveries", async (c) => {
  const id = c.req.param("id")
  const [[counted], items] = await Promise.all([
    sql.unsafe(total, [id, c.get("account")], { prepare: true }),
    sql.unsafe(page, [id], { prepare: true }),
  ])
  if (counted === undefined) return c.body(null, 404)
  return c.json({ items: [...items], total: counted["total"], page: 0, limit: 20 })
})

const port = 20_000 + Math.floor(Math.random() * 12_000)
const { serve } = Reflect.get(globalThis, "Deno") as Serve
serve({ hostname: "127.0.0.1", port, onListen: () => say("listening", { port }) }, (request) => app.fetch(request))
