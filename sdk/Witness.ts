/**
 * A witness of transparency logs: cosigns (C2SP tlog-cosignature) each checkpoint that continues the one that it cosigned
 * before, and no other. A client that asks for its cosignatures cannot be shown another log than the other
 * clients.
 *
 * `addCheckpoint` answers the requests of C2SP tlog-witness; a server hands them to it.
 */
import { createHash, createPublicKey, type KeyObject, sign } from "node:crypto"
import { isContinued, type Tree } from "./MerkleProof.ts"
import { Refusal } from "./Refusal.ts"
import { bytesOf } from "./SignedNote.ts"
import { type LogPolicy, type TreeHead, verifyCheckpoint } from "./TransparencyLog.ts"

/** The signature type of a timestamped cosignature. */
const witnessType = 0x04

/** The checkpoints that the witness cosigned last, by the origin of the log. They have to survive a restart. */
export interface WitnessMemory {
  readonly last: (origin: string) => Promise<Tree | null>
  /** Remembers `next` where `before` is still the last one; gives whether it was. */
  readonly replace: (origin: string, before: Tree | null, next: Tree) => Promise<boolean>
}

export interface WitnessAnswer {
  readonly status: 200 | 400 | 403 | 404 | 409 | 422
  readonly contentType: string
  readonly body: string
}

export interface Witness {
  /** The key by which verifiers are told the witness: `name+id+base64`. */
  readonly key: string
  /** Answers the body of a request to add a checkpoint, at this time in seconds since 1970. */
  readonly addCheckpoint: (body: string, seconds: number) => Promise<WitnessAnswer>
}

const maxRequest = 128 * 1024
const maxProof = 63

const answer = (status: WitnessAnswer["status"], body: string, contentType = "text/plain"): WitnessAnswer => ({
  status,
  contentType,
  body,
})

/** The parts of a request; null where it is malformed. */
const requestOf = (body: string) => {
  const end = body.indexOf("\n\n")
  if (end < 0 || body.length > maxRequest) return null
  const [old, ...encoded] = body.slice(0, end).split("\n")
  const [, digits] = /^old (0|[1-9]\d{0,15})$/.exec(old!) ?? []
  const size = Number(digits)
  const proof = encoded.map(bytesOf).filter((hash) => hash?.length === 32)
  if (digits === undefined || !Number.isSafeInteger(size) || encoded.length > maxProof) return null
  if (proof.length !== encoded.length) return null
  return { size, proof: proof.map((hash) => hash!), checkpoint: body.slice(end + 2) }
}

const statusOf = ({ step }: Refusal): 400 | 403 => step === "kid" || step === "signature" ? 403 : 400

const same = (a: Tree, b: Tree) => a.size === b.size && Buffer.from(a.root).equals(b.root)

/** Makes a witness with an Ed25519 key that follows these logs. */
export const witness = (
  { logs, memory, name, privateKey }: {
    readonly name: string
    readonly privateKey: KeyObject
    readonly logs: ReadonlyArray<Pick<LogPolicy, "origin" | "logKeys">>
    readonly memory: WitnessMemory
  },
): Witness => {
  const x = Buffer.from(String(createPublicKey(privateKey).export({ format: "jwk" }).x), "base64url")
  const material = Buffer.concat([Buffer.of(witnessType), x])
  const id = createHash("sha256").update(`${name}\n`).update(material).digest().subarray(0, 4)

  const cosignature = (checkpoint: string, seconds: number): string => {
    const text = checkpoint.slice(0, checkpoint.lastIndexOf("\n\n") + 1)
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(BigInt(seconds))
    const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`), privateKey)
    return `— ${name} ${Buffer.concat([id, time, signature]).toString("base64")}\n`
  }

  const addCheckpoint = async (body: string, seconds: number): Promise<WitnessAnswer> => {
    const request = requestOf(body)
    if (request === null) return answer(400, "malformed\n")
    const { checkpoint, proof, size } = request
    const log = logs.find(({ origin }) => checkpoint.startsWith(`${origin}\n`))
    if (log === undefined) return answer(404, "not a log of this witness\n")
    let head: TreeHead
    try {
      head = verifyCheckpoint(checkpoint, log)
    } catch (error) {
      if (error instanceof Refusal) return answer(statusOf(error), `${error.message}\n`)
      throw error
    }
    if (size > head.size) return answer(400, "the old size is larger\n")
    const last = await memory.last(log.origin)
    const known = last?.size ?? 0
    if (size !== known) return answer(409, `${known}\n`, "text/x.tlog.size")
    // Nothing is known of a log that is new: its first checkpoint continues the empty tree.
    const before = last ?? { size: 0, root: createHash("sha256").digest() }
    if (before.size === head.size && !same(before, head)) return answer(409, `${known}\n`, "text/x.tlog.size")
    if (!isContinued(before, head, proof)) return answer(422, "the proof does not show a continuation\n")
    if (!(await memory.replace(log.origin, last, { size: head.size, root: head.root }))) {
      return answer(409, `${(await memory.last(log.origin))?.size ?? 0}\n`, "text/x.tlog.size")
    }
    return answer(200, cosignature(checkpoint, seconds))
  }

  return { key: `${name}+${id.toString("hex")}+${material.toString("base64")}`, addCheckpoint }
}
