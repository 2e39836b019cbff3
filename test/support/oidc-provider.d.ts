/** The part of oidc-provider that the tests use; the package has no types. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http"
  interface Token {
    save(): Promise<string>
    destroy(): Promise<void>
  }
  interface Client {
    readonly clientId: string
  }
  interface Context {
    readonly method: string
    readonly path: string
    readonly status: number
    body: Record<string, unknown>
    readonly oidc: { readonly entities: { readonly Client: unknown; readonly RegistrationAccessToken: Token } }
  }
  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>)
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void
    on(event: "registration_create.success", listener: (context: Context) => void): void
    on(
      event: "registration_update.success" | "registration_delete.success",
      listener: (context: Context, client: Client) => void,
    ): void
    readonly RegistrationAccessToken: new (of: { readonly client: unknown }) => Token
  }
}
