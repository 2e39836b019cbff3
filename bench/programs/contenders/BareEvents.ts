/** The yardstick of reading: plain node:http that serves the rows of a page from PostgreSQL without any checks. */
import "../../../src/process/HideAsyncHooks.ts"
import { createServer } from "node:http"
import postgres from "postgres"
import { decodeCursor, encodeCursor } from "../../../schemas/identity/Cursor.ts"
import { Option } from "effect"
import { listenBelow, say, variable } from "../ChildProtocol.ts"

const sql = postgres(variable("DATABASE_URL"), { max: 10, onnotice: () => {} })

const page = async (project: string, after: string, limit: number) => {
  const { epoch, position } = Option.getOrThrow(decodeCursor(after))
  const rows = await sql<Array<{ position: string; jti: string; set: string }>>`
    select position, event_id::text as jti, message as set from lifecycle_messages
    where project_id = ${project} and epoch = ${epoch} and position > ${position} order by position limit ${limit}`
  const [head] = await sql<Array<{ position: string }>>`
    select position from lifecycle_heads where project_id = ${project}`
  const last = Number(rows.at(-1)?.position ?? position)
  return {
    items: rows.map(({ position, ...item }) => ({ ...item, position: Number(position) })),
    cursor: encodeCursor({ epoch, position: last }),
    head: Number(head!.position),
    more: last < Number(head!.position),
  }
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1")
  page(pathname.split("/")[3]!, searchParams.get("after")!, Number(searchParams.get("limit"))).then((found) => {
    const text = JSON.stringify(found)
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text)
  }, (error) => response.writeHead(500).end(String(error)))
})
say("listening", { port: await listenBelow(server) })
