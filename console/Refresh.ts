/** Pages that follow what changes by itself. */
import { useEffect } from "preact/hooks"
import type { Resource } from "./Resource.ts"

/** Asks again every `seconds` seconds while the page is looked at. */
export const useRefresh = (resource: Pick<Resource<unknown>, "reload" | "loading">, seconds: number): void =>
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible" && !resource.loading.value) void resource.reload()
    }, seconds * 1_000)
    return () => clearInterval(timer)
  }, [resource, seconds])
