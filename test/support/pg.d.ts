/** As much of pg as the tests use; the package brings no types. */
declare module "pg" {
  interface Client {
    readonly query: (
      text: string,
      values?: Array<string | number | null>,
    ) => Promise<{ readonly rows: ReadonlyArray<{ readonly [column: string]: unknown }> }>
  }
  class Pool implements Client {
    constructor(options: { readonly connectionString: string; readonly max: number })
    readonly query: Client["query"]
    connect(): Promise<Client & { readonly release: (broken?: boolean) => void }>
    end(): Promise<void>
  }
  const pg: { readonly Pool: typeof Pool }
  export default pg
}
