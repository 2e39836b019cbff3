/**
 * A sample product that admits people by lifecycle events: it follows its project's lifecycle into SQLite and answers
 * `GET /enter?issuer=…&subject=…`. See README.md beside it.
 */
import { createServer } from "node:http"
import process from "node:process"
import { DatabaseSync } from "node:sqlite"
import { follow } from "../../sdk/Follow.ts"
import { gate } from "../../sdk/Gate.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"

const required = (name: string): string => {
  const value = process.env[name]
  if (value === undefined || value === "") {
    process.stderr.write(`${name} is not set\n`)
    process.exit(1)
  }
  return value
}

const baseUrl = required("BAILIWICK_URL")
const projectId = required("PROJECT_ID")
const token = required("LIFECYCLE_TOKEN")
const pins = required("LIFECYCLE_PINS").split(",")

const database = new DatabaseSync(process.env["PRODUCT_DB"] ?? "product.db")
// One write to the disk per commit. With less than `full`, a power failure could undo acknowledged events.
database.exec("pragma journal_mode = wal; pragma synchronous = full")
// The product's own table, changed in the transactions that apply events.
database.exec(
  "create table if not exists visits_ended (jti text primary key, type text not null)",
)

const store = sqliteStore(database)
await store.prepare()
const { mayEnter } = gate(store, projectId)

const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => stop.abort())
}

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? "/", "http://127.0.0.1")
  const issuedAt = searchParams.get("issued_at")
  const sid = searchParams.get("sid")
  mayEnter(
    searchParams.get("issuer") ?? "",
    searchParams.get("subject") ?? "",
    {
      ...(sid === null ? {} : { sid }),
      sessionIssuedAt: issuedAt === null ? Math.floor(Date.now() / 1_000) : Number(issuedAt),
    },
  ).then(
    (entry) =>
      response.writeHead(entry.may ? 200 : 403, {
        "content-type": "application/json",
      }).end(JSON.stringify(entry)),
    () => response.writeHead(503).end(),
  )
})
server.listen(Number(process.env["PRODUCT_PORT"] ?? "9100"), "127.0.0.1", () => {
  const at = server.address()
  if (at !== null && typeof at === "object") console.log(`product on http://127.0.0.1:${at.port}`)
})

await follow({
  baseUrl,
  projectId,
  store,
  pins,
  signal: stop.signal,
  // Messages may name another origin than the one under which this program reaches Bailiwick.
  issuer: process.env["LIFECYCLE_ISSUER"] ?? new URL("/lifecycle", baseUrl).href,
  installedVersion: process.env["INSTALLED_VERSION"] ?? "1.0.0",
  token: () => Promise.resolve(token),
  alongside: (applied, tx) => {
    if (applied.kind !== "events") return
    for (const { jti, type } of applied.events) {
      if (type.endsWith("/session-revoked")) {
        tx.prepare("insert into visits_ended values (?, ?)").run(jti, type)
      }
    }
  },
  notice: (notice) =>
    console.log(
      JSON.stringify({
        ...notice,
        ...("error" in notice ? { error: String(notice.error) } : {}),
      }),
    ),
})
server.close()
database.close()
