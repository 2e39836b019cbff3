/** The run of `deno task examples`, which records what the servers of these tests are asked. */
import { defineConfig } from "vitest/config"
import base from "./vitest.config.ts"

export default defineConfig({
  test: {
    ...base.test,
    setupFiles: [...base.test!.setupFiles as ReadonlyArray<string>, "test/support/examples/RecordExchanges.ts"],
  },
})
