/**
 * RS256 (RFC 7518, 3.3) by the system's OpenSSL. Under Deno a signature with 2048 bits takes 1.8 ms of a core, by
 * WebCrypto and by node:crypto alike; OpenSSL takes 0.3 ms, and signatures are most of what a lifecycle message costs.
 * So where Deno runs on a Linux that has OpenSSL 3 and may load it, keys sign there, on threads beside the program's
 * own. Node has OpenSSL inside.
 *
 * Guarantees: OpenSSL and node:crypto make the same bytes, since RSASSA-PKCS1-v1_5 has nothing random; a key whose
 * first signature differs from node:crypto's is not used. A key is freed once nothing can sign with it any more.
 */
import { type KeyObject, sign } from "node:crypto"
import { call, libCrypto } from "../../platform/security/LibCrypto.ts"

const digestSign = call("i32", "pointer", "buffer", "buffer", "buffer", "usize")

const symbols = {
  BIO_new_mem_buf: call("pointer", "buffer", "i32"),
  BIO_free: call("i32", "pointer"),
  PEM_read_bio_PrivateKey: call("pointer", "pointer", "pointer", "pointer", "pointer"),
  EVP_PKEY_free: call("void", "pointer"),
  EVP_sha256: call("pointer"),
  EVP_MD_CTX_new: call("pointer"),
  EVP_MD_CTX_free: call("void", "pointer"),
  EVP_DigestSignInit: call("i32", "pointer", "pointer", "pointer", "pointer", "pointer"),
  signNow: { ...digestSign, name: "EVP_DigestSign" },
  signBeside: { ...digestSign, name: "EVP_DigestSign", nonblocking: true },
}

/** A C pointer; null is NULL. */
type Pointer = object | null

interface Library {
  readonly BIO_new_mem_buf: (bytes: Uint8Array, length: number) => Pointer
  readonly BIO_free: (bio: Pointer) => number
  readonly PEM_read_bio_PrivateKey: (bio: Pointer, key: null, callback: null, data: null) => Pointer
  readonly EVP_PKEY_free: (key: Pointer) => void
  readonly EVP_sha256: () => Pointer
  readonly EVP_MD_CTX_new: () => Pointer
  readonly EVP_MD_CTX_free: (context: Pointer) => void
  readonly EVP_DigestSignInit: (context: Pointer, out: null, digest: Pointer, engine: null, key: Pointer) => number
  readonly signNow: (...of: Signing) => number
  readonly signBeside: (...of: Signing) => Promise<number>
}

type Signing = [context: Pointer, out: Uint8Array, length: Uint8Array, input: Uint8Array, inputLength: bigint]

/** Loaded once a process; undefined until it is first used, null where it cannot be loaded. */
let library: Library | null | undefined

const read = ({ BIO_free, BIO_new_mem_buf, PEM_read_bio_PrivateKey }: Library, key: KeyObject): Pointer => {
  const pem = new TextEncoder().encode(String(key.export({ type: "pkcs8", format: "pem" })))
  const bio = BIO_new_mem_buf(pem, pem.length)
  try {
    return PEM_read_bio_PrivateKey(bio, null, null, null)
  } finally {
    BIO_free(bio)
    pem.fill(0)
  }
}

/**
 * Frees the keys of signers that were collected; a signature under way holds a reference of its own (EVP_PKEY_CTX_new).
 */
const abandoned = new FinalizationRegistry<Pointer>((key) => library?.EVP_PKEY_free(key))

/** Signs bytes; rejects where OpenSSL does not. */
export type Rs256 = (input: Uint8Array) => Promise<Uint8Array>

/** The signing function of an RSA key by OpenSSL; null where OpenSSL cannot be loaded or does not take the key. */
export const openSsl = (key: KeyObject): Rs256 | null => {
  if (library === undefined) library = libCrypto<Library>(symbols)
  if (library === null || key.asymmetricKeyType !== "rsa") return null
  const { EVP_DigestSignInit, EVP_MD_CTX_free, EVP_MD_CTX_new, EVP_sha256, signBeside, signNow } = library
  const own = read(library, key)
  if (own === null) return null
  const size = (key.asymmetricKeyDetails?.modulusLength ?? 0) / 8

  // Keeps the buffers of a signature alive until its thread is done.
  const inUse = new Set<Signing>()
  const begin = (input: Uint8Array): Signing => {
    const length = new Uint8Array(new BigUint64Array([BigInt(size)]).buffer)
    const context = EVP_MD_CTX_new()
    EVP_DigestSignInit(context, null, EVP_sha256(), null, own)
    const signing: Signing = [context, new Uint8Array(size), length, input, BigInt(input.length)]
    inUse.add(signing)
    return signing
  }
  const end = (signing: Signing, done: number): Uint8Array => {
    if (done !== 1) throw new Error("OpenSSL did not sign")
    return signing[1]
  }
  const free = (signing: Signing) => {
    EVP_MD_CTX_free(signing[0])
    inUse.delete(signing)
  }

  const probe = begin(new TextEncoder().encode("bailiwick"))
  try {
    if (!sign("sha256", probe[3], key).equals(end(probe, signNow(...probe)))) return null
  } catch {
    return null
  } finally {
    free(probe)
  }
  const rs256: Rs256 = async (input) => {
    const signing = begin(input)
    try {
      return end(signing, await signBeside(...signing))
    } finally {
      free(signing)
    }
  }
  abandoned.register(rs256, own)
  return rs256
}
