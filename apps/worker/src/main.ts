// The example worker, which runs the handlers of the example catalogue with their resources.
import { catalogue } from '@bullpen/tasks'
import { createWorker, runUntilSignalled, workerConfig } from '@bullpen/worker'
import { handlers } from './handlers/index.ts'
import { RESOURCE_SETTINGS, workerResources } from './resources/index.ts'

const { filesRoots, receiptEndpoint, ...config } = workerConfig(RESOURCE_SETTINGS)
const resources = workerResources({ filesRoots, receiptEndpoint })
const isolatedResources = import.meta.resolve('./resources/isolated.ts')
const code = await runUntilSignalled(() => createWorker({ catalogue, handlers, resources, isolatedResources, config }))
// The process exits explicitly, because a handler that is still running after its attempt was abandoned would keep it alive.
process.exit(code)
