/**
 * Receivers in a process of their own, so that their cost does not disturb measurements in another: HARD of them refuse
 * at once, HOLES never answer. Prints their ports in one line.
 */
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import process from "node:process"

const open = (listener: RequestListener) =>
  new Promise<number>((resolve) => {
    const server = createServer(listener)
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  })

const many = (count: number, listener: RequestListener) =>
  Promise.all(Array.from({ length: count }, () => open(listener)))

const hard = await many(Number(process.env["HARD"]), (request, response) => {
  request.resume().once("end", () => response.writeHead(503, { "content-length": "0" }).end())
})
const holes = await many(Number(process.env["HOLES"]), (request) => void request.resume())

console.log(`receivers ${JSON.stringify({ hard, holes })}`)
