/** Names of mail accounts, for operators, whose records and queues name accounts by their ids. */
import { Schema } from "effect"
import { AccountId } from "../BrandedIds.ts"

/** Up to 100 ids of accounts, separated by commas. */
export const askedAccounts = Schema.String.check(Schema.isPattern(/^[0-9a-fA-F-]{36}(,[0-9a-fA-F-]{36}){0,99}$/u))

export const AccountName = Schema.Struct({ account_id: AccountId, name: Schema.String })
  .annotate({ identifier: "AccountName" })

export const AccountNames = Schema.Struct({ items: Schema.Array(AccountName) }).annotate({ identifier: "AccountNames" })
export type AccountNames = typeof AccountNames.Type
