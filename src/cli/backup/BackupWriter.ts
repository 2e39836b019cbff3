/** Writes a database into an output, in one consistent snapshot, however much is written meanwhile. */
import { createHash } from "node:crypto"
import { once } from "node:events"
import { createGzip } from "node:zlib"
import { partitionsOf, schemaOf, sequencesOf, type Table, tablesOf, unfinishedOf } from "./Tables.ts"
import { type BackupConnection, listOf } from "./BackupConnection.ts"
import { chunkBytes, magic, type Manifest, type Part } from "./Format.ts"
import type { Output } from "./Output.ts"

const newline = 0x0a

/** Counts rows. Each row is one line: COPY escapes line breaks in it. */
const linesOf = (bytes: Uint8Array): number => {
  let lines = 0
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines++
  return lines
}

const writePart = async (
  db: BackupConnection,
  { columns, name }: Table,
  out: Output,
  tell: (bytes: number) => void,
): Promise<Part> => {
  const hash = createHash("sha256")
  let pending: Array<Uint8Array> = []
  let size = 0
  let bytes = 0
  let rows = 0
  const flush = async () => {
    if (size === 0) return
    await out.write(new TextEncoder().encode(`${name} ${size}\n`))
    for (const piece of pending) await out.write(piece)
    bytes += size
    pending = []
    size = 0
    tell(bytes)
  }
  const packing = createGzip({ level: 4 })
  const packed = (async () => {
    for await (const piece of packing as AsyncIterable<Uint8Array>) {
      for (let at = 0; at < piece.length;) {
        const some = piece.subarray(at, at + chunkBytes - size)
        hash.update(some)
        pending.push(some)
        size += some.length
        at += some.length
        if (size === chunkBytes) await flush()
      }
    }
  })()
  const reading = async () => {
    for await (const piece of db.read(`select ${listOf(columns)} from "${name}"`) as AsyncIterable<Uint8Array>) {
      rows += linesOf(piece)
      if (!packing.write(piece)) await Promise.race([once(packing, "drain"), packed])
    }
    packing.end()
  }
  // The first failure ends both, so that neither waits for ever for rows, or for room.
  await Promise.all([reading(), packed])
  await flush()
  return { table: name, columns: [...columns], rows, bytes, sha256: hash.digest("hex") }
}

/** Writes all tables, and then the manifest, which it returns. `tables` are the program's. */
export const writeBackup = async (
  db: BackupConnection,
  out: Output,
  { madeAt, tables, tell }: {
    readonly madeAt: Date
    readonly tables: ReadonlyArray<string>
    readonly tell: (text: string) => void
  },
): Promise<Manifest> => {
  await db.rows("begin transaction isolation level repeatable read read only")
  const found = await tablesOf(db, tables)
  await out.write(new TextEncoder().encode(magic))
  const parts: Array<Part> = []
  for (const [n, table] of found.entries()) {
    const at = `${n + 1} of ${found.length} tables, ${table.name}`
    tell(at)
    parts.push(await writePart(db, table, out, (bytes) => tell(`${at}, ${(bytes / 1e6).toFixed(1)} MB`)))
  }
  const [one] = await db.rows<{ epoch: number; projects: number; events: string }>(
    `select i.epoch, (select count(*)::int from lifecycle_heads) as projects,
      (select coalesce(sum(position), 0)::text from lifecycle_heads) as events
    from installation i`,
  )
  const manifest: Manifest = {
    made_at: madeAt.toISOString(),
    schema: await schemaOf(db),
    unfinished: await unfinishedOf(db),
    epoch: one!.epoch,
    histories: { projects: one!.projects, events: Number(one!.events) },
    keys: await db.rows<{ kid: string; check: string }>(
      `select kid, encode(check_value, 'hex') as check from vault_keys order by kid`,
    ),
    parts,
    partitions: await partitionsOf(db),
    sequences: await sequencesOf(db),
  }
  await db.rows("commit")
  const text = JSON.stringify(manifest)
  const sha256 = createHash("sha256").update(text).digest("hex")
  await out.write(new TextEncoder().encode(`manifest ${new TextEncoder().encode(text).length}\n${text}\n${sha256}\n`))
  await out.finish()
  return manifest
}
