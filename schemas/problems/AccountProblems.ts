/** Failures of accounts and their keys. */
import { Problem } from "./Problem.ts"

export class ApiKeyLimit
  extends Problem<ApiKeyLimit>()("ApiKeyLimit", "api_key_limit", 403, "The plan's number of API keys is reached") {}

export class ApiKeyNotFound extends Problem<ApiKeyNotFound>()("ApiKeyNotFound", "not_found", 404, "Not found") {}

/** A domain that does not exist or that the caller may not see. */
export class DomainNotFound extends Problem<DomainNotFound>()("DomainNotFound", "not_found", 404, "Not found") {}
