/**
 * A product as a program, which kills itself with SIGKILL at the Nth hit of a point: `FAULT=point:N`.
 *
 * `fetched`: a page, a snapshot or a poll has arrived and is not verified. `verified`: it is verified; nothing is
 * written. `applied`: everything is written; nothing is committed. `committed`: committed, not acknowledged.
 * `acknowledged`: the transmitter has the acknowledgement; the program has not read the response. `answered`: a push
 * was answered. With STREAM_ID the program polls that stream, with PUSHED as well it listens for pushes, otherwise it
 * follows by cursor.
 */
import { createServer } from "node:http"
import process from "node:process"
import { DatabaseSync } from "node:sqlite"
import pg from "pg"
import { follow } from "../../sdk/Follow.ts"
import { receiver } from "../../sdk/Receive.ts"
import type { Store } from "../../sdk/Store.ts"
import { overPg, postgresStore } from "../../sdk/stores/Postgres.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"

const env = (name: string) => process.env[name] ?? ""

const [fault, nth] = env("FAULT").split(":")
let left = Number(nth)
const hit = (point: string) => {
  if (point === fault && --left === 0) process.kill(process.pid, "SIGKILL")
}

const mortal = <Tx>(store: Store<Tx>): Store<Tx> => ({
  ...store,
  transact: async (work, alongside) => {
    hit("verified")
    const done = await store.transact(work, (done, tx) => {
      const also = alongside?.(done, tx)
      if (!(also instanceof Promise)) return hit("applied")
      return also.then(() => hit("applied"))
    })
    hit("committed")
    return done
  },
})

const fetched: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init)
  const { pathname } = new URL(String(input))
  if (/\/(events|snapshot|poll)$/.test(pathname)) hit("fetched")
  if (pathname.endsWith("/acknowledgements")) hit("acknowledged")
  return answer
}

const stop = new AbortController()
process.on("SIGTERM", () => stop.abort())

const receive = async <Tx>(store: Store<Tx>) => {
  await store.prepare()
  const options = {
    baseUrl: env("BAILIWICK_URL"),
    issuer: env("LIFECYCLE_ISSUER"),
    projectId: env("PROJECT_ID"),
    installedVersion: "1",
    pins: env("LIFECYCLE_PINS").split(","),
    signal: stop.signal,
    fetch: fetched,
    token: () => Promise.resolve(env("LIFECYCLE_TOKEN")),
    store: mortal(store),
    notice: (notice: object) =>
      console.log(JSON.stringify({ ...notice, ...("error" in notice ? { error: String(notice.error) } : {}) })),
  }
  if (env("STREAM_ID") === "") return follow(options)
  const one = receiver({
    ...options,
    streamId: env("STREAM_ID"),
    ...(env("PUSHED") === "" ? {} : { authorization: env("PUSHED") }),
  })
  if (env("PUSHED") === "") return one.poll()
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part)).on("end", () => {
      one.receive(Buffer.concat(parts).toString(), request.headers.authorization).then(({ body, status }) => {
        response.on("finish", () => hit("answered"))
        response.writeHead(status, { "content-type": "application/json" }).end(
          body === null ? "" : JSON.stringify(body),
        )
      })
    })
  })
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    if (address !== null && typeof address === "object") console.log(`listening on ${address.port}`)
  })
  await one.run()
  server.closeAllConnections()
  server.close()
}

if (env("PRODUCT_URL") !== "") {
  const pool = new pg.Pool({ connectionString: env("PRODUCT_URL"), max: 3 })
  await receive(postgresStore(overPg(pool)))
  await pool.end()
} else {
  const database = new DatabaseSync(env("PRODUCT_DB"))
  database.exec("pragma busy_timeout = 10000")
  await receive(sqliteStore(database))
  database.close()
}
