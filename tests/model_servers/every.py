"""All stand-ins, in the order in which people read of them."""

from tests.model_servers import chinese, hosts, local, makers, openai
from tests.model_servers.stand_in import StandIn

EVERY: tuple[type[StandIn], ...] = (
    *(openai.OpenAI, openai.OpenAIUnverified, openai.AzureOpenAI, makers.Anthropic, makers.Gemini),
    *(makers.Gemma, makers.Mistral, chinese.DeepSeek, makers.XAI, makers.Perplexity, makers.Cohere),
    *(chinese.Moonshot, chinese.Zai, chinese.DashScope),
    *(hosts.OpenRouter, hosts.Groq, hosts.Together, hosts.Fireworks, hosts.Cerebras, hosts.HuggingFace),
    *(hosts.Cloudflare, local.Ollama, local.VLLM, local.OldVLLM, local.SGLang, local.LMStudio),
    *(local.LlamaCpp, local.KoboldCpp, local.LiteLLM, local.LiteLLMWithoutDatabase),
)
