/**
 * The system's OpenSSL 3 (`libcrypto.so.3`), where Deno runs on a Linux that has it and may load it. Node has OpenSSL
 * inside and needs none of this.
 */

/** The type of a function of the library, as Deno.dlopen takes it. */
export interface Signature {
  readonly parameters: ReadonlyArray<string>
  readonly result: string
  readonly name?: string
  readonly nonblocking?: boolean
}

export const call = (result: string, ...parameters: ReadonlyArray<string>): Signature => ({ parameters, result })

interface Begun {
  readonly OPENSSL_init_crypto: (options: bigint, settings: null) => number
}

/** The part of Deno's namespace that is used here; the sources are checked without Deno's types. */
interface Deno {
  readonly build: { readonly os: string }
  readonly permissions: { readonly querySync: (of: { readonly name: "ffi" }) => { readonly state: string } }
  readonly dlopen: <Library>(name: string, of: Readonly<Record<keyof Library, Signature>>) => {
    readonly symbols: Library
  }
}

/** OPENSSL_INIT_NO_ATEXIT: a thread may still be signing when the process ends. */
const noCleanup = 0x80000n

/** Loads these functions of the library; null where the library cannot be loaded or lacks one of them. */
export const libCrypto = <Library>(symbols: Readonly<Record<keyof Library, Signature>>): Library | null => {
  const deno = Reflect.get(globalThis, "Deno") as Deno | undefined
  if (deno?.build.os !== "linux" || deno.permissions.querySync({ name: "ffi" }).state !== "granted") return null
  try {
    const begun = deno.dlopen<Begun>("libcrypto.so.3", { OPENSSL_init_crypto: call("i32", "u64", "pointer") })
    if (begun.symbols.OPENSSL_init_crypto(noCleanup, null) !== 1) return null
    return deno.dlopen<Library>("libcrypto.so.3", symbols).symbols
  } catch {
    return null
  }
}
