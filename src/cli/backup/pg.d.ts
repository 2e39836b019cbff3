/** Types for the part of pg that is used here; the package has none. */
declare module "pg" {
  import type { Duplex } from "node:stream"

  /** The protocol of a session. */
  export interface Wire {
    readonly stream: Duplex
    query(text: string): void
    sendCopyFromChunk(bytes: Uint8Array): void
    endCopyFrom(): void
    sendCopyFail(message: string): void
  }
  /** Takes the server's messages while it is the client's active query. */
  export interface Query {
    readonly submit: (wire: Wire) => void
    readonly handleRowDescription: () => void
    readonly handleDataRow: () => void
    readonly handlePortalSuspended: () => void
    readonly handleEmptyQuery: () => void
    readonly handleCommandComplete: () => void
    readonly handleCopyData: (message: { readonly chunk: Uint8Array }) => void
    readonly handleCopyInResponse: (wire: Wire) => void
    readonly handleReadyForQuery: () => void
    readonly handleError: (error: Error) => void
  }
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
    query(query: Query): Query
  }
  class Pool {
    constructor(options: { readonly connectionString: string; readonly max: number })
    on(event: "error", listener: (error: Error) => void): this
    query(text: string, values?: ReadonlyArray<unknown>): Promise<Answer>
    connect(): Promise<{ readonly query: Pool["query"]; readonly release: (broken?: boolean) => void }>
    end(): Promise<void>
  }
  const pg: { readonly Client: typeof Client; readonly Pool: typeof Pool }
  export default pg
}
