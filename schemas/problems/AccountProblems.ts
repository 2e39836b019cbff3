/** Failures of accounts and their keys. */
import { Problem } from "./Problem.ts"

export class ApiKeyLimit
  extends Problem<ApiKeyLimit>()("ApiKeyLimit", "api_key_limit", 403, "The plan's number of API keys is reached") {}

export class ApiKeyNotFound extends Problem<ApiKeyNotFound>()("ApiKeyNotFound", "not_found", 404, "Not found") {}
