// Puts TLS in front of a server, so that tests need no Redis that was built with TLS.
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/**
 * Returns the path of a PEM file. `ca.pem` has signed the others. `server.pem` and `expired.pem` are certificates of 127.0.0.1 with the
 * key `server.key`. All but `expired.pem` are valid until 2120.
 */
export function tlsFile(name: 'ca.pem' | 'server.pem' | 'server.key' | 'expired.pem' | 'client.pem' | 'client.key') {
  return fileURLToPath(new URL(name, import.meta.url))
}

/** Starts a TLS server on 127.0.0.1 that passes connections on to a port there. Returns its own port. It is closed after the test. */
export async function tlsFront(
  port: number,
  { cert = 'server.pem', demandsClientCertificate = false }: TlsFrontOptions = {},
): Promise<number> {
  const [key, certificate, ca] = [tlsFile('server.key'), tlsFile(cert), tlsFile('ca.pem')].map((path) =>
    readFileSync(path),
  )
  const sockets = new Set<TLSSocket>()
  const options = { key, cert: certificate, ca, requestCert: demandsClientCertificate, rejectUnauthorized: true }
  const server = createServer(options, (socket) => {
    sockets.add(socket)
    const inner = connect(port, '127.0.0.1')
    socket.on('error', () => inner.destroy()).on('close', () => inner.destroy())
    inner.on('error', () => socket.destroy()).on('close', () => socket.destroy())
    socket.pipe(inner).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

export interface TlsFrontOptions {
  readonly cert?: 'server.pem' | 'expired.pem'
  readonly demandsClientCertificate?: boolean
}
