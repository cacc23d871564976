// Reads the files for TLS with Redis, and says why they cannot be used. The module has its own entry point because it needs Node.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { RedisTlsFiles } from '../redis-url.ts'

/** Returns what is wrong with the files, or undefined if each of them can be used, and all of them can be used together. */
export function faultOfTlsFiles({ ca, cert, key }: RedisTlsFiles): string | undefined {
  try {
    createSecureContext({
      ca: ca && contentOf('ca', ca),
      cert: cert && contentOf('cert', cert),
      key: key && contentOf('key', key),
    })
    return undefined
  } catch (error) {
    return textOf(error)
  }
}

/** @throws Error with the message that {@link faultOfTlsFiles} returns. */
export function readTlsFile(name: keyof RedisTlsFiles, path: string): Buffer {
  try {
    return contentOf(name, path)
  } catch (cause) {
    throw new Error(textOf(cause), { cause })
  }
}

function textOf(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error)
  const problem = 'the files for TLS with Redis cannot be used (ca, cert and key in its URL)'
  return `${problem}: ${why}; expected PEM files, and the key that belongs to cert`
}

function contentOf(name: keyof RedisTlsFiles, path: string): Buffer {
  const content = readFileSync(path)
  if (name === 'ca') checkCertificates(path, content)
  return content
}

/** Node ignores whatever is not a certificate, and would then trust no CA. */
function checkCertificates(path: string, content: Buffer): void {
  const certificates = content
    .toString('latin1')
    .match(/-----BEGIN [A-Z\d ]*CERTIFICATE-----[^-]*(?:-----END [A-Z\d ]+-----)?/g)
  if (certificates === null) throw new Error(`${path} contains no certificate in PEM form`)
  for (const each of certificates) {
    try {
      new X509Certificate(each)
    } catch (cause) {
      throw new Error(`${path} contains a damaged certificate`, { cause })
    }
  }
}
