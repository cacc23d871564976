// Reads the files for TLS with Redis, and says which of them cannot be used. The module has its own entry point because it needs Node.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { RedisTlsFiles } from '../redis-url.ts'

/** Returns what is wrong with the files, or undefined if they can be used, each alone and all together. */
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

/** @throws Error with the text of {@link faultOfTlsFiles}. */
export function readTlsFile(name: keyof RedisTlsFiles, path: string): Buffer {
  try {
    return contentOf(name, path)
  } catch (cause) {
    throw new Error(textOf(cause), { cause })
  }
}

function textOf(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error)
  return `the files for TLS with Redis cannot be used (ca, cert and key in its URL): ${why}`
}

function contentOf(name: keyof RedisTlsFiles, path: string): Buffer {
  const content = readFileSync(path)
  if (name === 'ca') checkCertificates(path, content)
  return content
}

/** Node ignores what is not a certificate, and would trust no CA. */
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
