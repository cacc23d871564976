// Every file that names the version of this repository names the same one.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (file) => readFileSync(join(root, file), 'utf8')
const { version } = JSON.parse(read('package.json'))

/** Returns the versions of Bullpen that a package's manifest or lock entry names: its own, and those that it depends on. */
function versionsIn({ version: own, dependencies, devDependencies, peerDependencies }) {
  const siblings = Object.entries({ ...dependencies, ...devDependencies, ...peerDependencies })
  return [own, ...siblings.filter(([name]) => name.startsWith('@bullpen/')).map(([, range]) => range)]
}

test.each(globSync('{packages,apps,tools}/*/package.json', { cwd: root }))(
  '%s has the version of the workspace',
  (file) => {
    expect(new Set(versionsIn(JSON.parse(read(file))))).toEqual(new Set([version]))
  },
)

test('the lock file has the version of the workspace', () => {
  const entries = Object.entries(JSON.parse(read('package-lock.json')).packages)
  const own = entries.filter(([path]) => !path.includes('node_modules/')).flatMap(([, entry]) => versionsIn(entry))
  expect(new Set(own)).toEqual(new Set([version]))
})

test('the first section of the changelog is about the version of the workspace', () => {
  expect(read('CHANGELOG.md').match(/^## ([\d.]+)/m)?.[1]).toBe(version)
})

test('the manifests and their README name images of the version of the workspace', () => {
  const tags = read('k8s/base/kustomization.yaml').match(/(?<=newTag: )\S+/g)
  const inReadme = read('k8s/README.md').match(/(?<=bullpen-(?:api|worker):|ref=v)\d[\d.]*\d/g)
  expect(new Set([...tags, ...inReadme])).toEqual(new Set([version]))
})
