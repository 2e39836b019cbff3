/** Dead letters of an account, newest first, for operators. Few rows are written here, so the index costs little. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statement = `create index dead_letters_of_account on dead_letters (account_id, delivery_id desc)`

export default Effect.gen(function* () {
  yield* (yield* SqlClient.SqlClient).unsafe(statement)
})
