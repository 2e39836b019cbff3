/**
 * The RSA public operation by the system's OpenSSL: a number to the power of 65537, modulo the key's modulus (RFC 8017,
 * 5.2.2, RSAVP1). Deno's engine takes three times as long for it, and it is most of a message's cost.
 *
 * Only for Deno on a Linux with OpenSSL 3 and with the permission to load it (`-A`, `--allow-ffi`), which is never
 * asked for. Otherwise `powers` gives null, and the caller computes without OpenSSL.
 */
const call = (result: string, ...parameters: ReadonlyArray<string>) => ({ parameters, result })
const pointers = (count: number) => Array.from({ length: count }, () => "pointer")

const symbols = {
  OPENSSL_init_crypto: call("i32", "u64", "pointer"),
  BN_new: call("pointer"),
  BN_free: call("void", "pointer"),
  BN_bin2bn: call("pointer", "buffer", "i32", "pointer"),
  BN_bn2binpad: call("i32", "pointer", "buffer", "i32"),
  BN_cmp: call("i32", ...pointers(2)),
  BN_CTX_new: call("pointer"),
  BN_MONT_CTX_new: call("pointer"),
  BN_MONT_CTX_set: call("i32", ...pointers(3)),
  BN_MONT_CTX_free: call("void", "pointer"),
  BN_mod_exp_mont: call("i32", ...pointers(6)),
}

/** A C pointer; null is NULL. */
type Pointer = object | null

interface Library {
  readonly OPENSSL_init_crypto: (options: bigint, settings: null) => number
  readonly BN_new: () => Pointer
  readonly BN_free: (number: Pointer) => void
  readonly BN_bin2bn: (bytes: Uint8Array, length: number, into: Pointer) => Pointer
  readonly BN_bn2binpad: (number: Pointer, into: Uint8Array, length: number) => number
  readonly BN_cmp: (a: Pointer, b: Pointer) => number
  readonly BN_CTX_new: () => Pointer
  readonly BN_MONT_CTX_new: () => Pointer
  readonly BN_MONT_CTX_set: (montgomery: Pointer, modulus: Pointer, context: Pointer) => number
  readonly BN_MONT_CTX_free: (montgomery: Pointer) => void
  readonly BN_mod_exp_mont: (
    ...of: [into: Pointer, base: Pointer, power: Pointer, modulus: Pointer, context: Pointer, montgomery: Pointer]
  ) => number
}

/** The parts of Deno's namespace that are used here; the sources are type-checked without Deno's library. */
interface Deno {
  readonly build: { readonly os: string }
  readonly permissions: { readonly querySync: (of: { readonly name: "ffi" }) => { readonly state: string } }
  readonly dlopen: (name: string, of: typeof symbols) => { readonly symbols: Library }
}

/** Shared by all keys, since calls are synchronous and never overlap. */
interface Shared {
  readonly library: Library
  readonly context: Pointer
  readonly power: Pointer
  readonly base: Pointer
  readonly result: Pointer
}

/** OPENSSL_INIT_NO_ATEXIT: other users of OpenSSL in this process clean up themselves. */
const noCleanup = 0x80000n
const exponent65537 = Uint8Array.of(1, 0, 1)

const load = (): Shared | null => {
  const deno = Reflect.get(globalThis as object, "Deno") as Deno | undefined
  try {
    if (deno?.build.os !== "linux" || deno.permissions.querySync({ name: "ffi" }).state !== "granted") return null
    const { symbols: library } = deno.dlopen("libcrypto.so.3", symbols)
    if (library.OPENSSL_init_crypto(noCleanup, null) !== 1) return null
    const [context, base, result] = [library.BN_CTX_new(), library.BN_new(), library.BN_new()]
    const power = library.BN_bin2bn(exponent65537, exponent65537.length, null)
    return [context, base, result, power].includes(null) ? null : { library, context, power, base, result }
  } catch {
    return null
  }
}

/** Loaded once per process; undefined before the first use. */
let shared: Shared | null | undefined

/** Frees a key's memory in OpenSSL once the key is garbage. */
const finalizers = new FinalizationRegistry<() => void>((free) => free())

/** The power of a number that has the modulus's length, in as many bytes; null if it is not below the modulus. */
export type Power = (number: Uint8Array) => Buffer | null

/** Powers under a modulus; null without OpenSSL. The next call overwrites the returned bytes. */
export const powers = (modulus: Uint8Array): Power | null => {
  shared ??= load()
  if (shared === null) return null
  const { base, context, library, power, result } = shared
  const { length } = modulus
  const own = library.BN_bin2bn(modulus, length, null)
  const montgomery = library.BN_MONT_CTX_new()
  const free = () => {
    library.BN_MONT_CTX_free(montgomery)
    library.BN_free(own)
  }
  if (own === null || montgomery === null || library.BN_MONT_CTX_set(montgomery, own, context) !== 1) {
    free()
    return null
  }
  const bytes = Buffer.alloc(length)
  const raised: Power = (number) => {
    if (number.length !== length || library.BN_bin2bn(number, length, base) === null) return null
    if (library.BN_cmp(base, own) >= 0) return null
    if (library.BN_mod_exp_mont(result, base, power, own, context, montgomery) !== 1) return null
    return library.BN_bn2binpad(result, bytes, length) === length ? bytes : null
  }
  finalizers.register(raised, free)
  return raised
}
