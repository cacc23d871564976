// Renders the manifests with kustomize into rendered/: `node k8s/render.ts`.
//
// Kustomize comes with kubectl, not with npm. The committed output lets the tests check real manifests on a machine without
// kubectl, and a digest of the inputs shows when the output is out of date.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseAllDocuments, stringify } from 'yaml'

export const KUSTOMIZATIONS = {
  base: 'base/',
  dev: 'overlays/dev/',
  backlog: 'overlays/backlog/',
  keda: 'overlays/keda/',
  'prometheus-operator': 'overlays/prometheus-operator/',
} as const

export type KustomizationName = keyof typeof KUSTOMIZATIONS

const here = new URL('./', import.meta.url)
const fileOf = (name: KustomizationName) => new URL(`rendered/${name}.yaml`, here)

/** Longer texts are replaced by their digest, because three copies of a dashboard would make the manifests hard to read. */
const LONGEST_TEXT = 2_000

const KUBECTL = 'kubectl'

export const hasKubectl = spawnSync(KUBECTL, ['version', '--client']).status === 0

/** Returns the manifests that kustomize renders now. @throws if kubectl is missing or fails. */
export function render(name: KustomizationName): unknown[] {
  if (!hasKubectl) {
    throw new Error('kubectl is not on PATH; install it: https://kubernetes.io/docs/tasks/tools/')
  }
  const folder = new URL(KUSTOMIZATIONS[name], here)
  return condensed(objectsIn(execFileSync(KUBECTL, ['kustomize', folder.pathname], { encoding: 'utf8' })))
}

/** Returns the manifests as they were last rendered. */
export function committed(name: KustomizationName): { readonly inputs: string; readonly objects: unknown[] } {
  const text = readFileSync(fileOf(name), 'utf8')
  return { inputs: /^# inputs (\S+)$/m.exec(text)?.[1] ?? 'none', objects: objectsIn(text) }
}

/** Returns a digest of all files that kustomize may read. */
export function inputsDigest(): string {
  const hash = createHash('sha256')
  const folders = ['base/', 'overlays/'].map((folder) => new URL(folder, here).pathname)
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath.replace(/\/$/, '')}/${entry.name}`),
  )
  for (const file of files.sort()) hash.update(`${file.slice(here.pathname.length)}\0`).update(readFileSync(file))
  return hash.digest('hex').slice(0, 32)
}

export const digestOf = (text: string): string => `sha256 ${createHash('sha256').update(text).digest('hex')}`

function objectsIn(text: string): unknown[] {
  return parseAllDocuments(text).map((document) => document.toJS() as unknown)
}

function condensed<T>(value: T): T {
  return JSON.parse(
    JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === 'string' && inner.length > LONGEST_TEXT ? digestOf(inner) : inner,
    ),
  ) as T
}

if (import.meta.main) {
  for (const name of Object.keys(KUSTOMIZATIONS) as KustomizationName[]) {
    const head = `# Rendered from ${KUSTOMIZATIONS[name]} by node k8s/render.ts; checked by the tests.\n# inputs ${inputsDigest()}\n`
    writeFileSync(
      fileOf(name),
      head +
        render(name)
          .map((object) => `---\n${stringify(object, { lineWidth: 0 })}`)
          .join(''),
    )
  }
}
