/** CPU and memory of processes, from the kernel. Linux only; elsewhere every figure is null. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"

const ticksASecond = 100

interface Stat {
  readonly parent: number
  readonly own: number
  /** Of children that have ended. */
  readonly ended: number
}

const statOf = (pid: number, file = `/proc/${pid}/stat`): Stat | null => {
  try {
    const text = readFileSync(file, "utf8")
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number)
    return { parent: fields[1]!, own: fields[11]! + fields[12]!, ended: fields[13]! + fields[14]! }
  } catch {
    return null
  }
}

/** Milliseconds of CPU that this process, and with `children` all below it, has used so far. */
export const cpuMillis = (pid: number, children = false): number | null => {
  const stat = statOf(pid)
  if (stat === null) return null
  let ticks = stat.own
  if (children) {
    ticks += stat.ended
    for (const name of readdirSync("/proc")) {
      const child = /^\d+$/.test(name) ? statOf(Number(name)) : null
      if (child?.parent === pid) ticks += child.own + child.ended
    }
  }
  return ticks * 1000 / ticksASecond
}

/** Milliseconds of CPU that the main thread of a process, the only one that runs our code, has used so far. */
export const mainThreadMillis = (pid: number): number | null => {
  const stat = statOf(pid, `/proc/${pid}/task/${pid}/stat`)
  return stat === null ? null : stat.own * 1000 / ticksASecond
}

const statusMegabytes = (pid: number, line: RegExp): number | null => {
  const file = `/proc/${pid}/status`
  if (!existsSync(file)) return null
  const kilobytes = line.exec(readFileSync(file, "utf8"))?.[1]
  return kilobytes === undefined ? null : Math.round(Number(kilobytes) * 1024 / 1e6)
}

/** Resident memory of a process in MB (10^6 bytes). */
export const rssMegabytes = (pid: number): number | null => statusMegabytes(pid, /^VmRSS:\s+(\d+) kB/m)

/** Its peak, ever or since `forgetPeak`. */
export const peakMegabytes = (pid: number): number | null => statusMegabytes(pid, /^VmHWM:\s+(\d+) kB/m)

export const forgetPeak = (pid: number): void => {
  const file = `/proc/${pid}/clear_refs`
  if (existsSync(file)) writeFileSync(file, "5")
}
