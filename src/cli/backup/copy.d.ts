/** As much of pg and pg-copy-streams as we use; the packages bring no types. */
declare module "pg" {
  import type { Readable, Writable } from "node:stream"

  interface Answer {
    readonly rows: ReadonlyArray<{ readonly [column: string]: unknown }>
  }
  class Client {
    constructor(options: {
      readonly connectionString: string
      readonly application_name?: string
      readonly connectionTimeoutMillis?: number
    })
    connect(): Promise<void>
    end(): Promise<void>
    on(event: "error", listener: (error: Error) => void): this
    query(text: string, values?: ReadonlyArray<unknown>): Promise<Answer>
    query<S extends Readable | Writable>(stream: S): S
  }
  class Pool {
    constructor(options: { readonly connectionString: string; readonly max: number })
    query(text: string, values?: ReadonlyArray<unknown>): Promise<Answer>
    connect(): Promise<{ readonly query: Pool["query"]; readonly release: (broken?: boolean) => void }>
    end(): Promise<void>
  }
  const pg: { readonly Client: typeof Client; readonly Pool: typeof Pool }
  export default pg
}

declare module "pg-copy-streams" {
  import type { Readable, Writable } from "node:stream"

  const copy: { readonly to: (text: string) => Readable; readonly from: (text: string) => Writable }
  export default copy
}
