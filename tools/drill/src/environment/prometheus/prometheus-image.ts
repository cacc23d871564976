// Provides the Prometheus image that docker-compose.yml names, also where no image registry can be reached.
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const succeeds = (file: string, args: readonly string[]): Promise<boolean> =>
  run(file, [...args]).then(
    () => true,
    () => false,
  )

/** The same paths, user and entry point as in the official image. */
const DOCKERFILE = `FROM node:24-bookworm-slim
COPY prometheus /bin/prometheus
RUN mkdir /prometheus && chown 65534:65534 /prometheus
USER 65534:65534
VOLUME /prometheus
EXPOSE 9090
ENTRYPOINT ["/bin/prometheus"]
`

/**
 * Uses the image if it is present or can be pulled. Otherwise, builds a stand-in with the same name from this machine's Prometheus, in
 * the folder `dir`.
 *
 * @throws Error if the image cannot be pulled and Prometheus is not installed.
 */
export async function provideImage(image: string, dir: string): Promise<'official' | 'stand-in'> {
  const label = await run('docker', [
    'image',
    'inspect',
    '--format',
    '{{index .Config.Labels "stand-in"}}',
    image,
  ]).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  )
  if (label !== undefined) return label === 'true' ? 'stand-in' : 'official'
  if (await succeeds('docker', ['pull', '--quiet', image])) return 'official'
  const program = await run('which', ['prometheus']).then(
    ({ stdout }) => stdout.trim(),
    (cause: unknown) => {
      throw new Error(`cannot pull ${image}, and Prometheus is not installed; on Debian: apt-get install prometheus`, {
        cause,
      })
    },
  )
  const context = join(dir, 'prometheus-image')
  mkdirSync(context, { recursive: true })
  cpSync(program, join(context, 'prometheus'), { dereference: true })
  writeFileSync(join(context, 'Dockerfile'), DOCKERFILE)
  await run('docker', ['build', '--quiet', '--network', 'host', '--label', 'stand-in=true', '-t', image, context])
  return 'stand-in'
}
