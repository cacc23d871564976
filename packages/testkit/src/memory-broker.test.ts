import { brokerConformance } from './internal/index.ts'
import { openMemory } from './memory-backend.fixture.ts'

brokerConformance('the memory broker', openMemory)
