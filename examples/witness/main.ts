/**
 * A sample witness of transparency logs: `POST /add-checkpoint` by C2SP tlog-witness, and `GET /key`. It keeps its key
 * and what it cosigned last in the folder DATA.
 */
import { createPrivateKey, generateKeyPairSync } from "node:crypto"
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import process from "node:process"
import { noteKey } from "../../sdk/SignedNote.ts"
import type { Tree } from "../../sdk/MerkleProof.ts"
import { witness, type WitnessMemory } from "../../sdk/Witness.ts"

const { DATA = "witness-data", LOG_KEYS = "", NAME, PORT = "8090" } = process.env
if (NAME === undefined || LOG_KEYS === "") {
  console.error(
    "NAME is the witness's name (witness.example.net), LOG_KEYS the keys of the logs, a space or line end between two",
  )
  process.exit(1)
}
mkdirSync(DATA, { recursive: true, mode: 0o700 })

/** Replaces a file whole, and returns once the disk has it: a cosignature must not be forgotten. */
const put = (file: string, text: string) => {
  const path = join(DATA, file)
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  const written = openSync(`${path}.new`, "r+")
  fsyncSync(written)
  closeSync(written)
  renameSync(`${path}.new`, path)
  const folder = openSync(DATA, "r")
  fsyncSync(folder)
  closeSync(folder)
}

if (!existsSync(join(DATA, "key.pem"))) {
  put("heads.json", "{}")
  put("key.pem", String(generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" })))
}
// A witness that forgot what it cosigned would cosign another history by the same key.
if (!existsSync(join(DATA, "heads.json"))) {
  console.error(`${DATA} has a key and no heads.json: restore that, or begin with a new key in an empty folder`)
  process.exit(1)
}
const privateKey = createPrivateKey(readFileSync(join(DATA, "key.pem")))

type Kept = Readonly<Record<string, { readonly size: number; readonly root: string }>>
const kept = (): Kept => JSON.parse(readFileSync(join(DATA, "heads.json"), "utf8"))
const lastOf = (origin: string): Tree | null => {
  const head = kept()[origin]
  return head === undefined ? null : { size: head.size, root: Buffer.from(head.root, "base64") }
}

/** One process uses the folder. `replace` has no pause in it, so no other request comes between its parts. */
const memory: WitnessMemory = {
  last: (origin) => Promise.resolve(lastOf(origin)),
  replace: (origin, before, { root, size }) => {
    const now = lastOf(origin)
    const same = now?.size === before?.size && (now === null || Buffer.from(now.root).equals(before!.root))
    if (same) {
      put("heads.json", JSON.stringify({ ...kept(), [origin]: { size, root: Buffer.from(root).toString("base64") } }))
    }
    return Promise.resolve(same)
  },
}

/** A log has two keys while its key is replaced. */
const logs = [...Map.groupBy(LOG_KEYS.split(/\s+/), (key) => noteKey(key).name)]
  .map(([origin, logKeys]) => ({ origin, logKeys }))
const { addCheckpoint, key } = witness({ name: NAME, privateKey, logs, memory })

/** A longer body is no request of a log. */
const maxBody = 128 * 1024

const server = createServer((request, response) => {
  const reply = (status: number, body: string, contentType = "text/plain") =>
    void response.writeHead(status, { "content-type": contentType }).end(body)
  if (request.method === "GET" && request.url === "/key") return reply(200, `${key}\n`)
  if (request.method !== "POST" || request.url !== "/add-checkpoint") return reply(404, "not found\n")
  let body = ""
  request.setEncoding("utf8")
  request.on("data", (part: string) => {
    body += part
    if (body.length > maxBody) request.destroy()
  })
  request.on("end", () => {
    addCheckpoint(body, Math.floor(Date.now() / 1_000)).then(
      ({ body, contentType, status }) => reply(status, body, contentType),
      (error) => {
        console.error(error)
        reply(500, "internal error\n")
      },
    )
  })
})
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void server.close())
server.listen(Number(PORT), "127.0.0.1", () => console.log(`witness ${key}`))
