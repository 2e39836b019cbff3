/** `/v1/account`, `/v1/workspaces` and `/v1/domains`: what the other endpoints' ids refer to (docs/api/mail.md; extras). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DomainId } from "../BrandedIds.ts"
import { AccountView, DomainPage, DomainView, WorkspacePage } from "../mail/AccountView.ts"
import { DomainNotFound } from "../problems/AccountProblems.ts"
import { InvalidCredentials } from "../problems/HttpProblems.ts"
import { ListFilter, QueryIntOr, QueryUuid } from "../Validation/Scalars.ts"
import { Authenticated } from "./CredentialsApi.ts"
import { RequestValidation } from "./RequestValidation.ts"

/** A page of a list of the mail API: at most `limit` items after the item `after_id`. */
export const cursorPage = {
  limit: QueryIntOr({ min: 1, max: 100 }, 50),
  /** The `next_after_id` of the page before. */
  after_id: Schema.optionalKey(QueryUuid),
}

const domainName = ListFilter([]).annotate({
  "x-wire": {
    type: "string",
    description: "This domain alone; a platform administrator's session finds it in every account",
  },
})

export class AccountApi extends HttpApiGroup.make("account")
  .add(
    HttpApiEndpoint.get("getAccount", "/v1/account", { success: AccountView, error: InvalidCredentials })
      .annotate(OpenApi.Summary, "Your account, its plan, and how much of the plan's limits is used"),
    HttpApiEndpoint.get("listWorkspaces", "/v1/workspaces", { query: cursorPage, success: WorkspacePage })
      .annotate(OpenApi.Summary, "List the workspaces that you belong to, oldest first"),
    HttpApiEndpoint.get("listDomains", "/v1/domains", {
      query: { ...cursorPage, name: Schema.optionalKey(domainName) },
      success: DomainPage,
    }).annotate(OpenApi.Summary, "List your domains and those of your workspaces, ascending by id"),
    HttpApiEndpoint.get("getDomain", "/v1/domains/:domain_id", {
      params: { domain_id: DomainId },
      success: DomainView,
      error: DomainNotFound,
    }).annotate(OpenApi.Summary, "Read a domain of yours or of your workspaces"),
  )
  .middleware(RequestValidation)
  .middleware(Authenticated)
  .annotateMerge(OpenApi.annotations({ title: "Account", description: "Your account, workspaces and domains." })) {}
